//! What is known of each tool's folder, and what follows when it changes.
//!
//! A folder that was published, here or by another process, goes into service as it is. A folder that
//! somebody edited does not: the version before stays in service until the edit is recorded or refused.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use skillz_tool::{Tool, ToolName};

use crate::{
    BrokenTool, Catalog, Generation, RegistryEvent,
    layout::Layout,
    live,
    load::{self, Found, Loaded},
    standing,
    walk::Walk,
};

/// A tool's folder as it was last seen.
#[derive(Debug, Clone)]
pub(crate) struct Folder {
    /// Its files then; `None` where they could not be listed.
    pub(crate) walk: Option<Walk>,
    /// The tool in service.
    pub(crate) service: Option<Arc<Tool>>,
    pub(crate) condition: Condition,
}

/// How a folder relates to what is in service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Condition {
    /// It is what is in service.
    Good,
    /// It holds a knowledge skill.
    Skill,
    /// It was edited, and nobody has looked at the edit yet.
    Edited,
    /// It was edited, and the edit with that hash was refused.
    Refused { hash: String, broken: BrokenTool },
    /// It cannot be read as a tool.
    Broken(BrokenTool),
}

/// A change of one folder, not yet told.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) folder: Option<Folder>,
    pub(crate) event: Option<RegistryEvent>,
}

/// Looks at a folder again; `None` if nothing about it changed. Blocks.
pub(crate) fn look(layout: &Layout, name: &str, known: Option<&Folder>) -> Option<Change> {
    let walk = load::walk(layout, name).ok().flatten();
    if known.is_some_and(|known| known.walk.is_some() && known.walk == walk) {
        return None;
    }
    let loaded = match &walk {
        Some(walk) => load::load_walked(layout, name, walk.clone()),
        None => load::load(layout, name),
    };
    let service = known.and_then(|known| known.service.as_ref());
    let folder = match loaded {
        Loaded::Nothing => None,
        Loaded::Skill => Some(Folder { walk, service: None, condition: Condition::Skill }),
        Loaded::Broken(broken) => Some(broken_folder(layout, name, walk, service, broken)),
        Loaded::Good(found) => Some(good_folder(layout, &found, known)),
    };
    if folder.is_none() && known.is_none() {
        return None;
    }
    let event = event_of(name, known, folder.as_ref());
    Some(Change { folder, event })
}

/// The last good version of a broken folder stays in service, over restarts too.
fn broken_folder(layout: &Layout, name: &str, walk: Option<Walk>, service: Option<&Arc<Tool>>, mut broken: BrokenTool) -> Folder {
    let service = match service {
        Some(tool) => Some(from_live_copy(layout, tool)),
        None => ToolName::for_existing(name)
            .ok()
            .and_then(|name| live::before_edit(layout, &name, None))
            .map(|found| found.tool_in(found.folder.clone())),
    };
    broken.in_service = service.is_some();
    Folder { walk, service, condition: Condition::Broken(broken) }
}

fn good_folder(layout: &Layout, found: &Found, known: Option<&Folder>) -> Folder {
    let walk = Some(found.walk.clone());
    let good = |service: Arc<Tool>| Folder { walk: walk.clone(), service: Some(service), condition: Condition::Good };
    let edited = |service: Option<Arc<Tool>>| {
        let condition = match known.map(|known| &known.condition) {
            // Touched, and still the edit that was refused.
            Some(refused @ Condition::Refused { hash, .. }) if *hash == found.hash => refused.clone(),
            _ => Condition::Edited,
        };
        Folder { walk: walk.clone(), service, condition }
    };
    let live_copy = live::of(layout, found.name.as_str(), found.version, &found.hash);
    match known.and_then(|known| known.service.as_ref()) {
        Some(tool) if tool.hash == found.hash && tool.version == found.version => match &live_copy {
            Some(live) if !found.pristine && live::module_differs(found, live) => edited(Some(from_live_copy(layout, tool))),
            _ => good(Arc::clone(tool)),
        },
        Some(_) if found.is_recorded() => good(in_service(found, live_copy.as_deref())),
        Some(tool) => edited(Some(from_live_copy(layout, tool))),
        None if found.needs_build => edited(None),
        None => match standing::before_edit(layout, found) {
            Some(before) => edited(Some(before.tool_in(before.folder.clone()))),
            // Changed since it was published somewhere, and nobody here knows what it was before: it runs as
            // it is, and is looked at like any edit.
            None if found.recorded_hash.is_some() && !found.is_recorded() => edited(Some(in_service(found, None))),
            None => good(in_service(found, live_copy.as_deref())),
        },
    }
}

fn in_service(found: &Found, live_copy: Option<&Path>) -> Arc<Tool> {
    found.tool_in(live_copy.unwrap_or(&found.folder).to_owned())
}

/// The same tool, run from its copy where there is one: its folder is no longer what it was.
fn from_live_copy(layout: &Layout, tool: &Arc<Tool>) -> Arc<Tool> {
    match live::of(layout, tool.name.as_str(), tool.version, &tool.hash) {
        Some(place) if place != tool.directory => {
            Arc::new(Tool::new(tool.name.clone(), tool.version, place, tool.manifest.clone(), tool.hash.clone()))
        }
        _ => Arc::clone(tool),
    }
}

fn event_of(name: &str, before: Option<&Folder>, after: Option<&Folder>) -> Option<RegistryEvent> {
    let served_before = before.and_then(|folder| folder.service.as_ref());
    let served_now = after.and_then(|folder| folder.service.as_ref());
    match (after.map(|folder| &folder.condition), served_before, served_now) {
        (Some(Condition::Edited), ..) => Some(RegistryEvent::Edited { name: ToolName::for_existing(name).ok()? }),
        (Some(Condition::Broken(_)), ..) => Some(RegistryEvent::Broken { name: name.to_owned() }),
        (_, Some(_), None) => Some(RegistryEvent::Removed { name: ToolName::for_existing(name).ok()? }),
        (_, before, Some(now)) if before.is_none_or(|before| before.version != now.version || before.hash != now.hash) => {
            let previous = before.map(|before| before.version);
            Some(RegistryEvent::Published { name: now.name.clone(), version: now.version, previous })
        }
        _ => None,
    }
}

/// Whether readers of the catalog see a difference.
pub(crate) fn is_visible(before: Option<&Folder>, after: Option<&Folder>) -> bool {
    match (before, after) {
        (None, None) => false,
        (Some(before), Some(after)) => {
            let same_service = match (&before.service, &after.service) {
                (None, None) => true,
                (Some(before), Some(after)) => Arc::ptr_eq(before, after),
                _ => false,
            };
            !same_service || before.condition != after.condition
        }
        _ => true,
    }
}

/// Puts together what readers see.
pub(crate) fn catalog(layout: &Layout, generation: Generation, folders: &BTreeMap<String, Folder>) -> Catalog {
    let mut catalog = Catalog { generation, ..Catalog::default() };
    for (name, folder) in folders {
        if let Some(tool) = &folder.service {
            catalog.tools.insert(tool.name.clone(), Arc::clone(tool));
        }
        match &folder.condition {
            Condition::Good => {}
            Condition::Skill => catalog.skills.push(layout.tool(name)),
            Condition::Edited => catalog.edited.extend(ToolName::for_existing(name)),
            Condition::Refused { broken, .. } | Condition::Broken(broken) => catalog.broken.push(broken.clone()),
        }
    }
    catalog
}
