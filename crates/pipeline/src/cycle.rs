//! Whether a pipeline would call itself through others.

use std::collections::HashSet;

use skillz_json::Value;

use crate::catalogue::Catalogue;

/// The calls that lead from the pipeline `name` back to itself, if any: its name, those between, its name.
pub(crate) fn find_cycle<'a>(name: &str, tools: impl Iterator<Item = &'a str>, catalogue: &dyn Catalogue) -> Option<Vec<String>> {
    let mut seen: HashSet<String> = HashSet::new();
    // Paths still to follow; every tool is followed once, whichever way it was reached.
    let mut open: Vec<Vec<String>> = tools.map(|tool| vec![name.to_owned(), tool.to_owned()]).collect();
    while let Some(path) = open.pop() {
        let Some(last) = path.last() else { continue };
        if last == name {
            return Some(path);
        }
        if !seen.insert(last.clone()) {
            continue;
        }
        let Some(tool) = catalogue.find(last) else { continue };
        let steps = tool.manifest.pipeline_steps.as_ref().and_then(Value::as_array);
        for next in steps.into_iter().flatten().filter_map(|step| step.get("tool").and_then(Value::as_str)) {
            let mut longer = path.clone();
            longer.push(next.to_owned());
            open.push(longer);
        }
    }
    None
}
