//! Puts the tools of imported servers beside those on disk. A tool on disk keeps its name: an imported one of the same
//! name gets another.

use std::{collections::HashSet, sync::Arc};

use skillz_registry::Catalog;
use skillz_tool::{BUILTIN_NAMES, Tool, ToolName, UpstreamTools};

/// Longest name of a tool, in bytes.
const NAME_LENGTH: usize = 48;

/// All tools there are. Renamed tools are taken over from `before` where they are the same, so that nothing is made
/// anew for them.
pub(crate) fn catalog(local: &Arc<Catalog>, imported: &UpstreamTools, before: &Catalog) -> Arc<Catalog> {
    if imported.generation == 0 {
        return Arc::clone(local);
    }
    let mut taken: HashSet<&str> = local.tools().map(|tool| tool.name.as_str()).collect();
    taken.extend(local.broken().iter().map(|broken| broken.name.as_str()));
    let own_names: HashSet<&str> = imported.tools.iter().map(|tool| tool.name.as_str()).collect();
    let mut renamed_names = HashSet::new();
    let tools = imported.tools.iter().filter_map(|tool| {
        if !taken.contains(tool.name.as_str()) {
            return Some(Arc::clone(tool));
        }
        let is_free = |name: &str| {
            !taken.contains(name) && !own_names.contains(name) && !renamed_names.contains(name) && !BUILTIN_NAMES.contains(&name)
        };
        let name = ToolName::for_new(&free_name(tool.name.as_str(), is_free)).ok()?;
        renamed_names.insert(name.as_str().to_owned());
        Some(renamed(tool, name, before))
    });
    let tools: Vec<Arc<Tool>> = tools.collect();
    // Both counters only grow, so their sum does at each change of either.
    Arc::new(local.with(tools, imported.generation))
}

/// The name with the first number behind it that makes it free.
fn free_name(name: &str, is_free: impl Fn(&str) -> bool) -> String {
    let mut number = 2_u32;
    loop {
        let suffix = format!("_{number}");
        let stem = name.get(..name.len().min(NAME_LENGTH - suffix.len())).unwrap_or(name);
        let candidate = format!("{stem}{suffix}");
        if is_free(&candidate) {
            return candidate;
        }
        number += 1;
    }
}

fn renamed(tool: &Arc<Tool>, name: ToolName, before: &Catalog) -> Arc<Tool> {
    let is_same = |known: &&Arc<Tool>| known.hash == tool.hash && known.manifest.mcp_server == tool.manifest.mcp_server;
    if let Some(known) = before.get(name.as_str()).filter(is_same) {
        return Arc::clone(known);
    }
    let mut manifest = tool.manifest.clone();
    name.as_str().clone_into(&mut manifest.name);
    Arc::new(Tool::new(name, tool.version, tool.directory.clone(), manifest, tool.hash.clone()))
}

#[cfg(test)]
mod tests {
    use skillz_tool::{Manifest, ToolKind, Version};

    use super::*;

    fn tool(name: &str, kind: ToolKind) -> Arc<Tool> {
        let manifest = Manifest::new(name, "Probes", kind);
        let tool_name = ToolName::for_new(name).expect("valid");
        Arc::new(Tool::new(tool_name, Version::FIRST, "/nowhere".into(), manifest, format!("hash of {name}")))
    }

    #[test]
    fn tools_on_disk_keep_their_names() {
        let long = "x".repeat(48);
        let local = [tool("a_b", ToolKind::Script), tool("a_b_2", ToolKind::Script), tool(&long, ToolKind::Script)];
        let local = Arc::new(Catalog::default().with(local.to_vec(), 1));
        let imported = ["a_b", "a_b_3", "a_c", &long].map(|name| tool(name, ToolKind::Mcp));
        let imported = UpstreamTools { generation: 1, tools: Arc::new(imported.to_vec()) };
        let merged = catalog(&local, &imported, &Catalog::default());
        let names: Vec<(&str, ToolKind)> = merged.tools().map(|tool| (tool.name.as_str(), tool.kind())).collect();
        let shortened = format!("{}_2", "x".repeat(46));
        let expected = [
            ("a_b", ToolKind::Script),
            ("a_b_2", ToolKind::Script),
            ("a_b_3", ToolKind::Mcp),
            ("a_b_4", ToolKind::Mcp),
            ("a_c", ToolKind::Mcp),
            (long.as_str(), ToolKind::Script),
            (shortened.as_str(), ToolKind::Mcp),
        ];
        let mut expected = expected.to_vec();
        expected.sort_by_key(|(name, _)| *name);
        assert_eq!(names, expected);
        assert!(merged.generation() > local.generation());
        let again = catalog(&local, &imported, &merged);
        assert!(Arc::ptr_eq(again.get("a_b_4").expect("is there"), merged.get("a_b_4").expect("is there")));
    }
}
