//! What stands in a tool's place at the moment of a publish, and the history that the new folder takes over.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use skillz_tool::{Manifest, Origin, ToolName, Version};

use crate::{
    BrokenTool, RegistryError,
    breaking::breaks_callers,
    layout::{LEGACY_VERSIONS, Layout, MANIFEST, VERSIONS},
    live,
    load::{self, Found, Loaded},
    manifest_file, trash, tree, versions,
    walk::Walk,
};

/// What stands in a tool's place.
#[derive(Debug)]
pub(crate) enum Standing {
    /// Nothing.
    Absent,
    /// A tool as it was published, or as it came.
    Tool(Box<Found>),
    /// A tool that was edited by hand since; `before` is what it was.
    Edited { found: Box<Found>, before: Box<Found> },
    /// A folder that cannot be read as a tool; `before` is what it was.
    Broken { broken: Box<BrokenTool>, before: Option<Box<Found>> },
}

/// The history of a new folder.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// The highest number given so far.
    pub(crate) highest: Option<Version>,
    /// Folders in the trash whose versions are all in the new folder.
    pub(crate) merged: Vec<PathBuf>,
}

impl Standing {
    /// Looks at a tool's place. The tools folder's lock must be held.
    pub(crate) fn of(layout: &Layout, name: &ToolName) -> Result<Self, RegistryError> {
        match load::load(layout, name.as_str()) {
            Loaded::Nothing if layout.tool(name.as_str()).is_dir() => Self::of_foreign_folder(layout, name),
            Loaded::Nothing => Ok(Self::Absent),
            Loaded::Skill => Err(RegistryError::Invalid {
                reason: format!(
                    "The folder `{}` holds a knowledge skill (a `SKILL.md` without `tool_type`). Choose another name, or move the skill away",
                    layout.tool(name.as_str()).display()
                ),
            }),
            Loaded::Broken(broken) => {
                let before = live::before_edit(layout, name, None).map(Box::new);
                Ok(Self::Broken { broken: Box::new(broken), before })
            }
            Loaded::Good(found) => Ok(match before_edit(layout, &found) {
                Some(before) => Self::Edited { found, before: Box::new(before) },
                None => Self::Tool(found),
            }),
        }
    }

    /// An empty folder is as good as none; another may hold somebody's work.
    fn of_foreign_folder(layout: &Layout, name: &ToolName) -> Result<Self, RegistryError> {
        let folder = layout.tool(name.as_str());
        if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_none()) {
            return Ok(Self::Absent);
        }
        let reason =
            format!("There is a folder `{}` already, without a manifest. Choose another name, or move it away", folder.display());
        Err(RegistryError::Invalid { reason })
    }

    /// The tool as callers know it.
    pub(crate) fn in_service(&self) -> Option<&Found> {
        match self {
            Self::Absent => None,
            Self::Tool(found) => Some(found),
            Self::Edited { before, .. } => Some(before),
            Self::Broken { before, .. } => before.as_deref(),
        }
    }

    /// Puts into `history` what the earlier versions in the present folder lack: what stands in the tool's place, and
    /// what lies in the trash. Those that the folder has already are not touched, however many they are. With
    /// `replaces_edit` an edit is what is being published, and so no earlier version.
    pub(crate) fn archive(
        &self,
        layout: &Layout,
        name: &ToolName,
        history: &Path,
        replaces_edit: bool,
    ) -> Result<History, RegistryError> {
        let present = layout.tool(name.as_str()).join(VERSIONS);
        let fallback = self.in_service().map(|found| &found.manifest);
        let archive = Archive { layout, name, history, present, fallback };
        let failed = || RegistryError::io("Keeping the earlier versions in", history);
        archive.build(self, replaces_edit).map_err(failed())
    }
}

/// What a folder was before it was edited; `None` if it was not, or if nobody knows.
pub(crate) fn before_edit(layout: &Layout, found: &Found) -> Option<Found> {
    if found.pristine {
        return None;
    }
    if let Some(live) = live::of(layout, found.name.as_str(), found.version, &found.hash) {
        return if live::module_differs(found, &live) { live::read(&live, &found.name) } else { None };
    }
    if found.is_recorded() {
        return None;
    }
    live::before_edit(layout, &found.name, found.recorded_hash.as_deref()).filter(|before| before.hash != found.hash)
}

struct Archive<'a> {
    layout: &'a Layout,
    name: &'a ToolName,
    history: &'a Path,
    /// The earlier versions of the present folder.
    present: PathBuf,
    /// For versions of Skillz 0.8 that come without a manifest.
    fallback: Option<&'a Manifest>,
}

impl Archive<'_> {
    fn build(&self, standing: &Standing, replaces_edit: bool) -> io::Result<History> {
        let mut history = History::default();
        fs::create_dir(self.history)?;
        let folder = self.layout.tool(self.name.as_str());
        self.carry_over(&folder, &mut history)?;
        self.merge_trash(&mut history)?;
        match standing {
            Standing::Absent => {}
            Standing::Tool(found) if !replaces_edit => {
                self.add(found, found.version, &mut history)?;
            }
            // Not published so far: its number is free. Published elsewhere: its number is taken.
            Standing::Tool(found) => {
                if found.recorded_hash.is_some() {
                    history.count(found.version);
                }
            }
            Standing::Edited { found, before } => {
                self.add(before, before.version, &mut history)?;
                if !replaces_edit {
                    self.add_edit(found, before, &mut history)?;
                }
            }
            Standing::Broken { before, .. } => {
                if let Some(before) = before {
                    self.add(before, before.version, &mut history)?;
                }
                tree::copy_apart(&folder, &Walk::of(&folder)?, &self.history.join(format!("broken-{}", trash::stamp())))?;
            }
        }
        Ok(history)
    }

    /// The versions that the present folder holds; those of Skillz 0.8 move to the new place.
    fn carry_over(&self, folder: &Path, history: &mut History) -> io::Result<()> {
        for (version, from) in versions::in_folder(folder) {
            history.count(version);
            if from.parent().is_some_and(|parent| parent.ends_with(LEGACY_VERSIONS)) {
                self.take_over(&from, version)?;
            }
        }
        Ok(())
    }

    /// A version of Skillz 0.8; it gets a manifest if it has none.
    fn take_over(&self, from: &Path, version: Version) -> io::Result<()> {
        let place = self.history.join(version.to_string());
        tree::link_all(from, &place)?;
        match versions::read_version(&place, self.name, version, self.fallback) {
            Some(found) if found.walk.file(found.manifest_file).is_none() => {
                manifest_file::write(&place, &found.manifest)?;
                fs::File::open(place.join(MANIFEST))?.sync_all()
            }
            _ => Ok(()),
        }
    }

    /// The versions of a deleted tool of that name: its numbering goes on.
    fn merge_trash(&self, history: &mut History) -> io::Result<()> {
        for folder in versions::trashed_folders(self.layout, self.name) {
            let mut whole = true;
            for (version, from) in versions::in_folder(&folder) {
                whole &= self.merge(&from, version, history)?;
            }
            // A publish that was cut off leaves a history there, without a tool.
            if manifest_file::is_there(&folder) {
                match versions::read_folder(&folder, self.name, None) {
                    Some(found) => whole &= self.merge(&folder, found.version, history)?,
                    None => whole = false,
                }
            }
            if whole {
                history.merged.push(folder);
            }
        }
        Ok(())
    }

    /// Says whether the history has that version now, with that very content.
    fn merge(&self, from: &Path, version: Version, history: &mut History) -> io::Result<bool> {
        history.count(version);
        let Some(place) = self.place_of(version) else {
            tree::link(from, &Walk::of(from)?, &self.history.join(version.to_string()))?;
            return Ok(true);
        };
        let own = self.hash_of(from, version);
        Ok(own.is_some() && own == self.hash_of(&place, version))
    }

    /// Where a version is already.
    fn place_of(&self, version: Version) -> Option<PathBuf> {
        let places = [self.history, self.present.as_path()].map(|folder| folder.join(version.to_string()));
        places.into_iter().find(|place| place.exists())
    }

    fn hash_of(&self, folder: &Path, version: Version) -> Option<String> {
        versions::read_version(folder, self.name, version, self.fallback).map(|found| found.hash)
    }

    /// Adds a version under its number, or under the next free one if another has it.
    fn add(&self, found: &Found, version: Version, history: &mut History) -> io::Result<Version> {
        let number = match self.place_of(version) {
            None => version,
            // A publish that was cut off had come that far.
            Some(place) if self.hash_of(&place, version).as_ref() == Some(&found.hash) => {
                history.count(version);
                return Ok(version);
            }
            Some(_) => history.highest.map_or(Version::FIRST, |highest| highest.max(version).next(false)),
        };
        self.bring(found, &self.history.join(number.to_string()))?;
        history.count(number);
        Ok(number)
    }

    /// Makes a folder of the history. It shares no file with the tool's own folder: after a crash that one may still be
    /// in place, and an editor that writes into its files would write into the history.
    fn bring(&self, found: &Found, to: &Path) -> io::Result<()> {
        if found.folder != self.layout.tool(self.name.as_str()) {
            return tree::link(&found.folder, &found.walk, to);
        }
        let live = live::of(self.layout, self.name.as_str(), found.version, &found.hash);
        if let Some(live) = live.filter(|_| found.is_recorded()) {
            let walk = Walk::of(&live)?;
            if walk.files.iter().map(|stamp| &stamp.path).eq(found.walk.files.iter().map(|stamp| &stamp.path)) {
                return tree::link(&live, &walk, to);
            }
        }
        tree::copy_apart(&found.folder, &found.walk, to)
    }

    /// An edit that nobody has noticed so far becomes a version of its own.
    fn add_edit(&self, found: &Found, before: &Found, history: &mut History) -> io::Result<()> {
        let breaking = breaks_callers(before.manifest.input_schema.as_ref(), found.manifest.input_schema.as_ref());
        let next = history.highest.unwrap_or(before.version).next(breaking);
        let number = if history.highest.is_some_and(|highest| found.version > highest) { found.version } else { next };
        let number = self.add(found, number, history)?;
        let place = self.history.join(number.to_string());
        let mut manifest = found.manifest.clone();
        manifest.version = Some(number.to_string());
        manifest.hash = Some(found.hash.clone());
        stamp_origin(&mut manifest, Origin::Edit);
        // The file may be shared with another folder, so it is replaced rather than written to.
        match fs::remove_file(place.join(MANIFEST)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        manifest_file::write(&place, &manifest)?;
        fs::File::open(place.join(MANIFEST))?.sync_all()
    }
}

impl History {
    fn count(&mut self, version: Version) {
        self.highest = self.highest.max(Some(version));
    }
}

/// Notes in the manifest how a version came to be, beside what it says of its source.
pub(crate) fn stamp_origin(manifest: &mut Manifest, origin: Origin) {
    let mut source = match manifest.source.take() {
        Some(skillz_json::Value::Object(fields)) => fields,
        Some(skillz_json::Value::Null) | None => skillz_json::Map::new(),
        Some(other) => skillz_json::Map::from_iter([("from".to_owned(), other)]),
    };
    if origin != Origin::Rollback {
        source.shift_remove("rolled_back_to");
    }
    source.insert("origin".to_owned(), skillz_json::json!(origin));
    manifest.source = Some(skillz_json::Value::Object(source));
}
