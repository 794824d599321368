//! Where tools are imported from, as a trait: git, archives and the network stand behind it.

use std::{any::Any, fmt, path::PathBuf, sync::Arc};

use async_trait::async_trait;
use skillz_json::{Map, Value};

use crate::ToolError;

/// What to fetch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FetchRequest {
    /// A git URL, `gist:<id>`, an archive, a `SKILL.md`, or a folder, as the user gave it.
    pub source: String,
    /// A branch, tag or commit; wins over a `#ref` in the source.
    pub reference: Option<String>,
    /// A folder within the source.
    pub path: Option<String>,
    /// Folders of this machine that may be read from; `None` is all of them.
    pub allowed_folders: Option<Vec<PathBuf>>,
}

/// Plain files from elsewhere, in a folder that goes away with this.
pub struct Fetched {
    /// The folder. It holds no links.
    pub directory: PathBuf,
    /// Where the files came from: `from`, `commit` or `archive_hash`, `ref`, `path`. Holds no secret.
    pub provenance: Map<String, Value>,
    /// What to call a skill at the top that does not name itself.
    pub name: String,
    /// Sentences for whoever asked, such as links that were left out.
    pub notes: Vec<String>,
    /// Removes the folder when dropped.
    pub guard: Box<dyn Any + Send + Sync>,
}

impl fmt::Debug for Fetched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Fetched").field("directory", &self.directory).finish_non_exhaustive()
    }
}

/// Takes short sentences about how far a fetch is.
pub type FetchProgress = Arc<dyn Fn(&str) + Send + Sync>;

/// Fetches what others made, without trusting it: nothing of it is run, and nothing outside its folder is touched.
#[async_trait]
pub trait SourceFetcher: Send + Sync {
    /// Fetches a source. Dropping the future stops what it started and leaves nothing behind.
    async fn fetch(&self, request: FetchRequest, progress: FetchProgress) -> Result<Fetched, ToolError>;
}
