//! A data folder and a workspace that vanish after the test.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::Value;
use tempfile::TempDir;

/// A data folder and a workspace of one test.
#[derive(Debug)]
pub struct Home {
    folder: TempDir,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// A new, empty home.
    pub fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("skillz-test-").tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("home")).expect("a data folder");
        fs::create_dir(folder.path().join("workspace")).expect("a workspace");
        Self { folder }
    }

    /// The data folder (`SKILLZ_HOME`).
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    /// The folder of all tools.
    pub fn tools(&self) -> PathBuf {
        self.path().join("tools")
    }

    /// The folder that the server is started in.
    pub fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// The folder that holds data folder and workspace.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// Writes `config.toml`.
    #[must_use]
    pub fn with_config(self, text: &str) -> Self {
        fs::write(self.path().join("config.toml"), text).expect("config.toml");
        self
    }

    /// Writes a tool by hand: a manifest, and its source under the manifest's `entry_file`.
    pub fn write_tool(&self, manifest: &Value, source: &str) {
        let name = manifest["name"].as_str().expect("a manifest has a name");
        let folder = self.tools().join(name);
        fs::create_dir_all(&folder).expect("a tool's folder");
        if let Some(entry) = manifest["entry_file"].as_str() {
            fs::write(folder.join(entry), source).expect("a tool's source");
        }
        fs::write(folder.join("manifest.json"), format!("{manifest:#}")).expect("a manifest");
    }

    /// Copies a folder into the tools folder, with everything in it.
    pub fn copy_tools(&self, from: &Path) {
        copy(from, &self.tools());
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder to copy") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), &target).expect("a copied file");
        }
    }
}
