//! Where knowledge skills lie: `skills/<name>/` in the data folder. Every write is whole: the old folder or the new.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use skillz_json::{Map, Value};

use crate::{
    DiscoveredSkill, RegistryError, Skill, StagingDirectory,
    layout::{Layout, SKILL},
    lock::FolderLock,
    skill::is_skill_name,
    staging, swap, trash, tree,
    walk::Walk,
};

/// Where a skill's folder says what it was imported from.
const SOURCE: &str = ".source.json";

/// All knowledge skills. Nothing is kept in memory: what lies in the folder counts, whoever put it there.
#[derive(Debug, Clone)]
pub struct SkillShelf {
    layout: Layout,
}

impl SkillShelf {
    /// A shelf over a folder, which is made at the first import.
    pub fn new(folder: PathBuf) -> Self {
        Self { layout: Layout::new(folder) }
    }

    /// All skills, sorted by name; folders that hold none are passed over. Blocks.
    pub fn list(&self) -> Vec<Skill> {
        let Ok(entries) = fs::read_dir(self.layout.tools()) else { return Vec::new() };
        let mut skills: Vec<Skill> = entries.flatten().filter_map(|entry| self.get(entry.file_name().to_str()?)).collect();
        skills.sort_by(|left, right| left.name.cmp(&right.name));
        skills
    }

    /// A skill by its folder's name. Blocks.
    pub fn get(&self, name: &str) -> Option<Skill> {
        if !is_skill_name(name) {
            return None;
        }
        let folder = self.layout.tool(name);
        // A link may lead anywhere.
        if !fs::symlink_metadata(&folder).ok()?.is_dir() || !fs::symlink_metadata(folder.join(SKILL)).ok()?.is_file() {
            return None;
        }
        let mut skill = Skill::read(&folder, name).ok()?.ok()?;
        // The folder's name wins, as with tools.
        name.clone_into(&mut skill.name);
        Some(skill)
    }

    /// Puts a skill with all its files on the shelf; one of that name that is there already goes to `.trash`, and only
    /// with `overwrite`. Blocks.
    pub fn put(&self, found: &DiscoveredSkill, source: &Map<String, Value>, overwrite: bool) -> Result<Skill, RegistryError> {
        let name = found.skill.name.as_str();
        let place = self.layout.tool(name);
        staging::sweep(&self.layout);
        let staging = StagingDirectory::make(&self.layout)?;
        found.copy_to(staging.path()).map_err(RegistryError::io("Copying", &found.skill.directory))?;
        let failed = || RegistryError::io("Writing", staging.path());
        let mut text = serde_json::to_vec_pretty(source).map_err(io::Error::other).map_err(failed())?;
        text.push(b'\n');
        fs::write(staging.path().join(SOURCE), text).map_err(failed())?;
        let walk = Walk::of(staging.path()).map_err(failed())?;
        tree::sync(&tree::parts(staging.path(), &walk)).map_err(failed())?;

        let _lock = FolderLock::take(&self.layout)?;
        swap::recover(&self.layout);
        let is_there = fs::symlink_metadata(&place).is_ok();
        if is_there && !overwrite {
            return Err(RegistryError::Invalid { reason: format!("There is a skill `{name}` already") });
        }
        swap::put_in_place(staging.path(), &place).map_err(RegistryError::io("Replacing", &place))?;
        tree::sync_folder(self.layout.tools()).map_err(RegistryError::io("Writing", self.layout.tools()))?;
        if is_there {
            self.keep_old(name, staging.path());
        }
        self.get(name)
            .ok_or_else(|| RegistryError::Invalid { reason: format!("The skill `{name}` vanished while it was imported") })
    }

    /// What was replaced stays in the trash: somebody may have changed it by hand.
    fn keep_old(&self, name: &str, old: &Path) {
        let trash = self.layout.trash(name);
        let moved = fs::create_dir_all(&trash).and_then(|()| fs::rename(old, trash.join(trash::stamp())));
        if let Err(error) = moved {
            tracing::warn!(skill = name, %error, "The skill that was replaced could not be kept");
        }
    }
}
