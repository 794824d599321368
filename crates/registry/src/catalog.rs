//! All tools at one moment, as readers see them.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::Arc};

use serde::Serialize;
use skillz_tool::{Tool, ToolName};

/// Counts changes of the catalog; grows with each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Generation(pub u64);

/// A folder that looks like a tool and cannot be used as it stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BrokenTool {
    /// The folder's name; it need not be a valid tool name.
    pub name: String,
    /// The file at fault.
    pub file: PathBuf,
    /// The line in it, from 1, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// What is wrong, in a sentence.
    pub reason: String,
    /// Whether the last good version of the tool is still in service.
    pub in_service: bool,
}

/// All tools at one moment. Never changes; a later state is another catalog.
#[derive(Debug, Default)]
pub struct Catalog {
    pub(crate) generation: Generation,
    pub(crate) tools: BTreeMap<ToolName, Arc<Tool>>,
    pub(crate) broken: Vec<BrokenTool>,
    pub(crate) edited: Vec<ToolName>,
    pub(crate) skills: Vec<PathBuf>,
}

impl Catalog {
    /// Which state this is.
    pub fn generation(&self) -> Generation {
        self.generation
    }

    /// The tool of that name, in its current version.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.get(name)
    }

    /// Every tool, disabled ones too, sorted by name.
    pub fn tools(&self) -> impl ExactSizeIterator<Item = &Arc<Tool>> {
        self.tools.values()
    }

    /// This catalog with tools that come from elsewhere; those that are here already win over them. `change` grows with
    /// each change of those tools.
    #[must_use]
    pub fn with(&self, tools: Vec<Arc<Tool>>, change: u64) -> Self {
        let mut all = self.tools.clone();
        for tool in tools {
            all.entry(tool.name.clone()).or_insert(tool);
        }
        Self {
            generation: Generation(self.generation.0 + change),
            tools: all,
            broken: self.broken.clone(),
            edited: self.edited.clone(),
            skills: self.skills.clone(),
        }
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there is no tool.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// What could not be loaded, sorted by name.
    pub fn broken(&self) -> &[BrokenTool] {
        &self.broken
    }

    /// Tools whose files were changed by hand and which nobody has looked at yet; their last recorded
    /// version is the one in service meanwhile. See [`crate::Registry::stage_edit`].
    pub fn edited(&self) -> &[ToolName] {
        &self.edited
    }

    /// Folders among the tools that hold a knowledge skill: a `SKILL.md` without `tool_type`.
    pub fn skills(&self) -> &[PathBuf] {
        &self.skills
    }
}

impl fmt::Display for BrokenTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`", self.file.display())?;
        if let Some(line) = self.line {
            write!(formatter, " line {line}")?;
        }
        write!(formatter, ": {}", self.reason)
    }
}
