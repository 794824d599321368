//! What the supervisor of imported servers is told from outside. It reads no environment itself.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use skillz_process::Launcher;
use skillz_tool::ToolError;

/// Settings of the imported servers.
#[derive(Clone)]
pub struct UpstreamSettings {
    /// The folder of the definitions.
    pub directory: PathBuf,
    /// Where confined servers have a folder each, which is their home.
    pub data_directory: PathBuf,
    /// The data folder, which no confined server sees.
    pub skillz_home: PathBuf,
    /// The user's home; no confined server sees all of it.
    pub user_home: Option<PathBuf>,
    /// Starts local servers.
    pub launcher: Launcher,
    /// The server's environment, for references in definitions and for the harmless variables that local servers get.
    pub environment: BTreeMap<String, String>,
    /// The folders that local servers find programs in.
    pub search_path: Vec<PathBuf>,
    /// Finds the program of a command.
    pub find_program: FindProgram,
    /// Where local servers are started.
    pub working_directory: PathBuf,
    /// When servers are started.
    pub start: Start,
}

/// When servers are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At once, in the background; changes on disk are followed.
    AtOnce,
    /// At the first call of one of their tools: for a command that is over soon.
    OnDemand,
}

/// Finds the program of a command; its error says what to do.
pub type FindProgram = Arc<dyn Fn(&str) -> Result<FoundProgram, ToolError> + Send + Sync>;

/// A program that can be started.
#[derive(Debug, Clone)]
pub struct FoundProgram {
    /// Absolute path, as it was found.
    pub path: PathBuf,
    /// The program itself, behind links that a sandbox may not show.
    pub confined_path: PathBuf,
    /// What a sandbox must show for it, read-only.
    pub visible: Vec<PathBuf>,
}
