//! The fetcher as the engine knows it: reads the source, and fetches it one of the ways there are.

use std::{
    any::Any,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use async_trait::async_trait;
use skillz_json::{Map, Value, json};
use skillz_process::Launcher;
use skillz_tool::{ErrorKind, FetchProgress, FetchRequest, Fetched, SourceFetcher, ToolError};

use crate::{
    archive,
    download::Downloader,
    error::{refused, too_slow},
    gist,
    git::Git,
    limits,
    scratch::Scratch,
    source::{self, Parsed, Source, is_archive, shown_url},
};

/// The file that makes a folder a skill.
const SKILL: &str = "SKILL.md";

/// What an importer works with.
#[derive(Debug)]
pub struct ImportSettings {
    /// Where downloads lie while they are looked at; may be deleted at any time.
    pub scratch: PathBuf,
    /// Starts git.
    pub launcher: Launcher,
    /// Folders in which git and ssh are looked for.
    pub search_path: Vec<PathBuf>,
    /// What `~` is.
    pub user_home: Option<PathBuf>,
    /// What relative paths are relative to.
    pub working_directory: PathBuf,
    /// Variables for whoever fetches: proxies, certificates, the agent with ssh keys.
    pub variables: Vec<(OsString, OsString)>,
    /// Where gists are asked for, `https://api.github.com` as a rule.
    pub github_api: String,
}

/// Fetches sources. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Importer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    settings: ImportSettings,
    downloader: Downloader,
}

impl Importer {
    /// Starts nothing yet.
    pub fn new(settings: ImportSettings) -> Self {
        let downloader = Downloader::new(settings.variables.clone());
        Self { shared: Arc::new(Shared { settings, downloader }) }
    }
}

#[async_trait]
impl SourceFetcher for Importer {
    async fn fetch(&self, request: FetchRequest, progress: FetchProgress) -> Result<Fetched, ToolError> {
        let parsed = source::parse(&request)?;
        let what = format!("Fetching `{}`", shown_url(&request.source));
        match tokio::time::timeout(limits::TIME, self.shared.fetch(parsed, &request, &progress)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(too_slow(&what)),
        }
    }
}

impl Shared {
    async fn fetch(&self, parsed: Parsed, request: &FetchRequest, progress: &FetchProgress) -> Result<Fetched, ToolError> {
        let Parsed { source, path } = parsed;
        let path = path.as_deref();
        match source {
            Source::Git { url, reference } => self.fetch_repository(url, reference.as_deref(), path, request, progress).await,
            Source::Gist { id, revision } => {
                progress(&format!("Fetching the gist {id}"));
                let scratch = Scratch::make(&self.settings.scratch)?;
                let files = scratch.folder("files")?;
                let api = &self.settings.github_api;
                let provenance = gist::fetch(&self.downloader, api, &id, revision.as_deref(), &files).await?;
                let directory = archive::folder_in(&files, path, &format!("gist:{id}"))?;
                Ok(fetched(directory, provenance, id, scratch))
            }
            Source::Download(url) => {
                progress(&format!("Downloading {}", shown_url(url.as_str())));
                let scratch = Scratch::make(&self.settings.scratch)?;
                let file = scratch.path().join("download");
                let hash = self.downloader.save(&url, &file).await?;
                let name = url.path_segments().and_then(|mut segments| segments.next_back()).unwrap_or_default().to_owned();
                // A skill's folder names it, and so does the one in its address.
                let folders = url.path().trim_end_matches(&name).trim_end_matches('/').to_owned();
                let above = Path::new(&folders).file_name().and_then(|name| name.to_str()).map(str::to_owned);
                self.open_file(OpenFile { file, name, above, hash, shown: shown_url(url.as_str()) }, path, scratch).await
            }
            Source::Local(place) => self.fetch_local(&place, path, request, progress).await,
            Source::FileUrl { path: place, reference } => {
                let found = self.local(&place, request)?;
                if reference.is_some() || (found.is_dir() && is_repository(&found)) {
                    return self.fetch_repository(place, reference.as_deref(), path, request, progress).await;
                }
                self.fetch_local(&place, path, request, progress).await
            }
        }
    }

    async fn fetch_repository(
        &self,
        url: String,
        reference: Option<&str>,
        path: Option<&Path>,
        request: &FetchRequest,
        progress: &FetchProgress,
    ) -> Result<Fetched, ToolError> {
        let is_remote = url.contains("://") || (url.contains('@') && url.contains(':') && !Path::new(&url).exists());
        let url = if is_remote {
            url
        } else {
            let folder = self.local(&url, request)?;
            if !is_repository(&folder) {
                return Err(ToolError::invalid(format!("`{}` is no git repository, so it has no `ref`", folder.display()))
                    .with_hint("Leave `ref` out to import the folder as it lies there"));
            }
            format!("file://{}", folder.display())
        };
        progress(&format!("Fetching {}", shown_url(&url)));
        let program = self.settings.search_path.iter().map(|folder| folder.join("git")).find(|program| program.is_file());
        let program = program.ok_or_else(|| {
            ToolError::new(ErrorKind::Unavailable, "There is no program `git` on PATH, which fetches repositories")
                .with_hint("Install git (Debian: `apt-get install git`), or import an archive of the repository")
        })?;
        let scratch = Scratch::make(&self.settings.scratch)?;
        let files = scratch.folder("files")?;
        let git = Git {
            launcher: &self.settings.launcher,
            program,
            search_path: &self.settings.search_path,
            variables: &self.settings.variables,
            repository: scratch.folder("repository")?,
        };
        let checkout = git.fetch(&url, reference, path, &files).await?;
        let name = path.and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_else(|| repository_name(&url));
        let mut fetched = fetched(files, checkout.provenance, name.to_owned(), scratch);
        fetched.notes.extend(checkout.links.iter().map(|link| format!("`{link}` is a symbolic link, and was left out")));
        Ok(fetched)
    }

    async fn fetch_local(
        &self,
        place: &str,
        path: Option<&Path>,
        request: &FetchRequest,
        progress: &FetchProgress,
    ) -> Result<Fetched, ToolError> {
        let found = self.local(place, request)?;
        let shown = found.display().to_string();
        if found.is_dir() {
            // A repository without a working tree holds no files that could be read as they lie there.
            if !found.join(".git").exists() && is_repository(&found) {
                return self.fetch_repository(shown, None, path, request, progress).await;
            }
            return folder(&found, path, &shown);
        }
        // A device or a pipe may never end, and opening one may wait for ever.
        if !found.is_file() {
            return Err(refused(format!("`{shown}` is neither a file nor a folder")));
        }
        let name = found.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_owned();
        let above = found.parent();
        // One file of a tool is not the tool: its folder is.
        let is_tool = name == "manifest.json" || (name == SKILL && names_a_tool(&found));
        if let (true, Some(above)) = (is_tool, above) {
            return folder(above, path, &above.display().to_string());
        }
        let above = above.and_then(Path::file_name).and_then(|name| name.to_str()).map(str::to_owned);
        let scratch = Scratch::make(&self.settings.scratch)?;
        let (file, hashed) = (found.clone(), shown.clone());
        let hash = tokio::task::spawn_blocking(move || archive::hash(&file, &hashed)).await.map_err(ToolError::internal)??;
        self.open_file(OpenFile { file: found, name, above, hash, shown }, path, scratch).await
    }

    /// A file that is there: an archive, or a `SKILL.md` under whatever name.
    async fn open_file(&self, open: OpenFile, path: Option<&Path>, scratch: Scratch) -> Result<Fetched, ToolError> {
        let OpenFile { file, name, above, hash, shown } = open;
        let files = scratch.folder("files")?;
        let provenance =
            Map::from_iter([("from".to_owned(), json!(shown)), ("archive_hash".to_owned(), json!(format!("sha256:{hash}")))]);
        if name.to_ascii_lowercase().ends_with(".md") {
            let target = files.join(SKILL);
            let copied = tokio::task::spawn_blocking(move || fs::copy(file, target)).await.map_err(ToolError::internal)?;
            copied.map_err(|error| ToolError::internal(format!("`{shown}` cannot be copied: {error}")))?;
            let stem = name.get(..name.len() - 3).unwrap_or_default();
            let name = if stem.eq_ignore_ascii_case("skill") { above.unwrap_or_default() } else { stem.to_owned() };
            let name = if name.is_empty() { "skill".to_owned() } else { name };
            return Ok(fetched(files, provenance, name, scratch));
        }
        let (packed, into, of) = (file, files.clone(), shown.clone());
        tokio::task::spawn_blocking(move || archive::open(&packed, &of, &into)).await.map_err(ToolError::internal)??;
        let directory = archive::folder_in(&files, path, &shown)?;
        let mut provenance = provenance;
        if let Some(path) = path {
            provenance.insert("path".to_owned(), json!(path.to_string_lossy()));
        }
        let name = if is_archive(&name) { name.split('.').next().unwrap_or_default().to_owned() } else { name };
        Ok(fetched(directory, provenance, name, scratch))
    }

    /// Something on this machine, if the client may read it.
    fn local(&self, place: &str, request: &FetchRequest) -> Result<PathBuf, ToolError> {
        let written = match (place.strip_prefix("~/"), &self.settings.user_home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ if place == "~" => self.settings.user_home.clone().unwrap_or_else(|| PathBuf::from(place)),
            _ => self.settings.working_directory.join(place),
        };
        let missing = |error: &std::io::Error| {
            let message = format!("`{place}` cannot be read ({}): {error}", written.display());
            ToolError::new(ErrorKind::NotFound, message).with_hint(
                "A folder or file is given by its path, absolute, with `~/`, or relative to the server's working folder; \
                 a repository by its whole URL, such as https://github.com/owner/name",
            )
        };
        let real = written.canonicalize().map_err(|error| missing(&error))?;
        if let Some(allowed) = &request.allowed_folders {
            let within = allowed.iter().filter_map(|folder| folder.canonicalize().ok()).any(|folder| real.starts_with(folder));
            if !within {
                let message = format!("`{place}` lies outside the folders that clients over HTTP may read");
                return Err(ToolError::new(ErrorKind::Denied, message).with_hint(
                    "The operator names such folders in `SKILLZ_ROOTS`; a git URL or an archive's URL works from anywhere",
                ));
            }
        }
        Ok(real)
    }
}

/// A file to be opened, and what is known of it.
struct OpenFile {
    file: PathBuf,
    name: String,
    /// The folder that it lies in, by name.
    above: Option<String>,
    hash: String,
    shown: String,
}

/// A folder of this machine, as it lies there.
fn folder(root: &Path, path: Option<&Path>, shown: &str) -> Result<Fetched, ToolError> {
    let directory = archive::folder_in(root, path, shown)?;
    let real = directory.canonicalize().map_err(|error| ToolError::invalid(format!("`{shown}` cannot be read: {error}")))?;
    if !real.starts_with(root) {
        return Err(ToolError::new(ErrorKind::Denied, format!("`{}` leads out of `{shown}` by a link", directory.display())));
    }
    let name = real.file_name().and_then(|name| name.to_str()).unwrap_or("skill").to_owned();
    let mut provenance = Map::from_iter([("from".to_owned(), json!(shown))]);
    if let Some(commit) = head_of(root) {
        provenance.insert("repository_head".to_owned(), json!(commit));
    }
    if let Some(path) = path {
        provenance.insert("path".to_owned(), json!(path.to_string_lossy()));
    }
    Ok(fetched(real, provenance, name, ()))
}

fn fetched(directory: PathBuf, provenance: Map<String, Value>, name: String, guard: impl Any + Send + Sync) -> Fetched {
    Fetched { directory, provenance, name, notes: Vec::new(), guard: Box::new(guard) }
}

fn is_repository(folder: &Path) -> bool {
    folder.join(".git").exists() || (folder.join("HEAD").is_file() && folder.join("objects").is_dir())
}

/// The commit that a working tree is based on, read from its files: what lies in the tree may be newer. Git is not asked,
/// since in somebody's repository it would do as its configuration says.
fn head_of(folder: &Path) -> Option<String> {
    let git = folder.join(".git");
    let read =
        |file: PathBuf| file.symlink_metadata().ok().filter(fs::Metadata::is_file).and_then(|_| fs::read_to_string(file).ok());
    let head = read(git.join("HEAD"))?;
    let is_commit = |text: &str| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some(reference) = head.trim().strip_prefix("ref: ") else {
        return Some(head.trim().to_owned()).filter(|head| is_commit(head));
    };
    let plain = Path::new(reference).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let loose = read(git.join(reference)).filter(|_| plain).map(|commit| commit.trim().to_owned());
    let packed = || {
        let packed = read(git.join("packed-refs"))?;
        packed.lines().find_map(|line| line.strip_suffix(reference)?.strip_suffix(' ').map(str::to_owned))
    };
    loose.or_else(packed).filter(|commit| is_commit(commit))
}

/// Whether a `SKILL.md` is the manifest of a script of Skillz 0.8.
fn names_a_tool(file: &Path) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(65_536).read_to_end(&mut head));
    read.is_ok() && String::from_utf8_lossy(&head).lines().any(|line| line.starts_with("tool_type:"))
}

/// The last part of a repository's address.
fn repository_name(url: &str) -> &str {
    let path = url.trim_end_matches('/').trim_end_matches(".git");
    path.rsplit(['/', ':']).next().filter(|name| !name.is_empty()).unwrap_or("skill")
}
