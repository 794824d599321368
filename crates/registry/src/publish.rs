//! Makes a staged folder the current version of a tool, in one step that a crash cannot cut in half.
//!
//! Everything slow happens beside the tool: files, what its history lacks, and manifest are put together in the
//! staging folder and brought to the disk. Then the folder takes the tool's place by one exchange of names.

use std::{
    fs, io,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use skillz_tool::{Manifest, Origin, Tool, ToolName, Version};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};

use crate::{
    Expectation, Publication, RegistryError, StagingDirectory,
    breaking::breaks_callers,
    front_matter, handover,
    layout::{Layout, MANIFEST, SKILL, VERSIONS},
    live,
    load::Found,
    lock::FolderLock,
    manifest_file,
    standing::{History, Standing, stamp_origin},
    swap, trash, tree,
    walk::Walk,
};

/// Where the text of a `SKILL.md` goes when its front matter becomes a manifest.
const README: &str = "README.md";

/// A publication whose files are checked and on the disk.
struct Ready<'a> {
    layout: &'a Layout,
    name: &'a ToolName,
    origin: Origin,
    staging: &'a StagingDirectory,
    live: StagingDirectory,
    manifest: Manifest,
    hash: String,
    time: SystemTime,
}

/// Publishes. With `edit`, the folder must still be as it was when the edit was staged. Does nothing where it is not
/// `wanted` any more when its turn comes. Blocks.
pub(crate) fn publish(
    layout: &Layout,
    publication: Publication,
    edit: Option<&Walk>,
    wanted: &dyn Fn() -> bool,
) -> Result<Arc<Tool>, RegistryError> {
    let Publication { name, staging, manifest, origin, expected } = publication;
    let ready = Ready::new(layout, &name, origin, &staging, manifest)?;
    let lock = FolderLock::take(layout)?;
    if !wanted() {
        return Err(RegistryError::Stopped);
    }
    swap::recover(layout);
    let standing = Standing::of(layout, &name)?;
    check_expectation(&name, &standing, expected, origin, edit)?;
    let history_folder = staging.path().join(VERSIONS);
    let history = standing.archive(layout, &name, &history_folder, edit.is_some())?;
    let version = ready.number(&standing, &history);
    let tool = ready.put_in_place(&standing, version)?;
    drop(lock);
    trash::remove_merged(layout, &name, &history.merged);
    if let Some(before) = standing.in_service().filter(|before| (before.version, &before.hash) != (tool.version, &tool.hash)) {
        live::supersede(layout, &before.tool_in(before.folder.clone()));
    }
    live::collect_of(layout, &name, &tool.directory);
    Ok(tool)
}

impl<'a> Ready<'a> {
    fn new(
        layout: &'a Layout,
        name: &'a ToolName,
        origin: Origin,
        staging: &'a StagingDirectory,
        mut manifest: Manifest,
    ) -> Result<Self, RegistryError> {
        manifest.name = name.to_string();
        let failed = || RegistryError::io("Preparing", staging.path());
        clean(staging.path()).map_err(failed())?;
        let walk = Walk::of(staging.path()).map_err(failed())?;
        if let Some(link) = walk.links.first() {
            let reason = format!("`{name}` was not published: `{}` is a symbolic link, and a tool may hold none", link.display());
            return Err(RegistryError::Invalid { reason });
        }
        // As it will read from the disk: what is written must have the hash that is told.
        let text = manifest_file::to_text(&manifest).map_err(failed())?;
        let read = manifest_file::parse_json(&staging.path().join(MANIFEST), &text).map_err(|fault| RegistryError::Invalid {
            reason: format!("The manifest of `{name}` cannot be written: {}", fault.reason),
        })?;
        let found = Found::new(name.clone(), staging.path().to_owned(), walk, Manifest { hash: None, ..read }, MANIFEST)
            .map_err(failed())?
            .map_err(|reason| RegistryError::Invalid { reason: format!("`{name}` was not published. {reason}") })?;
        if found.needs_build {
            return Err(RegistryError::Invalid {
                reason: format!("`{name}` was not published: its module `{name}.wasm` was not built"),
            });
        }
        manifest.entry_file.clone_from(&found.manifest.entry_file);
        let live = StagingDirectory::make(layout)?;
        tree::copy(staging.path(), &found.walk, live.path()).map_err(RegistryError::io("Copying to", live.path()))?;
        Ok(Self { layout, name, origin, staging, live, manifest, hash: found.hash, time: now() })
    }

    /// The number of the new version.
    fn number(&self, standing: &Standing, history: &History) -> Version {
        let asked: Option<Version> = self.manifest.version.as_deref().and_then(|version| version.parse().ok());
        let Some(highest) = history.highest else { return asked.unwrap_or(Version::FIRST) };
        if let Some(asked) = asked.filter(|asked| *asked > highest) {
            return asked;
        }
        let before = standing.in_service().map(|found| found.manifest.input_schema.as_ref());
        highest.next(before.is_some_and(|before| breaks_callers(before, self.manifest.input_schema.as_ref())))
    }

    fn put_in_place(mut self, standing: &Standing, version: Version) -> Result<Arc<Tool>, RegistryError> {
        let time = OffsetDateTime::from(self.time).format(&Rfc3339).ok();
        let created = standing.in_service().and_then(|found| found.manifest.created_at.clone());
        self.manifest.version = Some(version.to_string());
        self.manifest.hash = Some(self.hash.clone());
        self.manifest.created_at = created.or_else(|| self.manifest.created_at.take()).or_else(|| time.clone());
        self.manifest.updated_at = time;
        stamp_origin(&mut self.manifest, self.origin);
        let staged = self.staging.path();
        self.write_manifest().map_err(RegistryError::io("Writing the manifest in", staged))?;
        let place = live::put_in_place(self.layout, &self.live, self.name.as_str(), version, &self.hash)?;
        self.settle(&place).map_err(RegistryError::io("Writing", staged))?;
        let folder = self.layout.tool(self.name.as_str());
        handover::put_in_place(self.layout, self.name, staged, self.time).map_err(RegistryError::io("Replacing", &folder))?;
        tree::sync_folder(self.layout.tools()).map_err(RegistryError::io("Writing", self.layout.tools()))?;
        Ok(Arc::new(Tool::new(self.name.clone(), version, place, self.manifest, self.hash)))
    }

    fn write_manifest(&self) -> io::Result<()> {
        let written = self.staging.path().join(MANIFEST);
        match fs::remove_file(&written) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        manifest_file::write(self.staging.path(), &self.manifest)?;
        fs::copy(&written, self.live.path().join(MANIFEST)).map(|_| ())
    }

    /// Everything reaches the disk before the new folder takes the old one's place.
    fn settle(&self, live_copy: &Path) -> io::Result<()> {
        let staged = self.staging.path();
        let history = staged.join(VERSIONS);
        // A tool without earlier versions needs no folder for them.
        let has_history = fs::remove_dir(&history).is_err();
        let walk = Walk::of(staged)?;
        tree::set_times(staged, &walk, self.time)?;
        let mut parts = tree::parts(staged, &walk);
        parts.extend(tree::parts(live_copy, &walk));
        parts.push(self.layout.live());
        if has_history {
            parts.extend(tree::new_folders(&history)?);
        }
        tree::sync(&parts)
    }
}

fn check_expectation(
    name: &ToolName,
    standing: &Standing,
    expected: Expectation,
    origin: Origin,
    edit: Option<&Walk>,
) -> Result<(), RegistryError> {
    let conflict = |found: String, expected: String| Err(RegistryError::Conflict { name: name.clone(), found, expected });
    if let (Standing::Broken { broken, .. }, false) = (standing, origin == Origin::Rollback) {
        return Err(RegistryError::Broken { broken: broken.clone() });
    }
    if let Some(edit) = edit {
        let unchanged = match standing {
            Standing::Tool(found) | Standing::Edited { found, .. } => found.walk == *edit,
            _ => false,
        };
        return if unchanged {
            Ok(())
        } else {
            conflict("its files changed again".to_owned(), "the edit as it was checked".to_owned())
        };
    }
    match (expected, standing.in_service()) {
        (Expectation::Absent, Some(found)) => Err(RegistryError::Exists { name: name.clone(), current: found.version }),
        (Expectation::Current(version), Some(found)) if found.version != version => {
            conflict(format!("version `{}` is current", found.version), format!("version `{version}`"))
        }
        (Expectation::Current(version), None) if matches!(standing, Standing::Absent) => {
            conflict("it was deleted".to_owned(), format!("version `{version}`"))
        }
        _ => Ok(()),
    }
}

/// Removes what is no part of a version from a staged folder.
fn clean(folder: &Path) -> io::Result<()> {
    for history in Walk::of(folder)?.histories {
        tree::remove(&folder.join(history))?;
    }
    remove_scrap(folder)?;
    retire_skill_file(folder)
}

fn remove_scrap(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if !crate::layout::is_scrap(&entry.file_name()) {
            if kind.is_dir() {
                remove_scrap(&entry.path())?;
            }
        } else if kind.is_dir() {
            tree::remove(&entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// A tool of Skillz 0.8 gets a manifest: the front matter of its `SKILL.md` would be a second truth beside it.
/// Its text stays, as `README.md`, if there is more to it than a heading.
fn retire_skill_file(folder: &Path) -> io::Result<()> {
    let file = folder.join(SKILL);
    if !file.is_file() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&fs::read(&file)?).into_owned();
    if !front_matter::names_field(&text, "tool_type") {
        return Ok(());
    }
    let body = front_matter::body(&text);
    let says_something = body.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#'));
    if says_something && !folder.join(README).exists() {
        fs::write(folder.join(README), body.trim_start())?;
    }
    fs::remove_file(file)
}

/// The present, in whole milliseconds: the files of a version carry it as their time, and the manifest as text.
fn now() -> SystemTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
