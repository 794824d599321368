//! What is known of a server's tools: kept beside its definition, so that the tools are there before the server is, and
//! a changed one shows.

use std::{collections::BTreeSet, fmt::Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use skillz_json::{Map, Value};

/// Fields of a tool that its users rely on.
const FIELDS: [&str; 6] = ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// A tool as it is offered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct KnownTool {
    /// Its name at the server.
    pub(crate) name: String,
    /// SHA-256 of what its users rely on, in hexadecimal. Empty where nothing is known of it but its name here.
    pub(crate) hash: String,
    /// Its name here, which stays once it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) served_as: Option<String>,
    /// Whether the server still lists it.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub(crate) listed: bool,
    /// What the server says of it.
    pub(crate) definition: Value,
}

/// The tools of a server, and what became of them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct KnownTools {
    /// Tools that were deleted here.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) hidden: BTreeSet<String>,
    /// Tools that are no longer what they were when they were first seen, or last accepted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(crate) changed: BTreeSet<String>,
    /// Every tool that was ever listed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) tools: Vec<KnownTool>,
}

impl KnownTool {
    /// Reads one entry of a server's list; `None` where it has no name to call it by.
    pub(crate) fn read(definition: Value) -> Option<Self> {
        let name = definition.get("name").and_then(Value::as_str).filter(|name| !name.is_empty())?.to_owned();
        let hash = hash(&definition);
        Some(Self { name, hash, served_as: None, listed: true, definition })
    }

    /// Takes over what is listed now. The name here stays.
    fn take(&mut self, listed: &Self) {
        self.hash.clone_from(&listed.hash);
        self.definition.clone_from(&listed.definition);
        self.listed = listed.listed;
    }
}

impl KnownTools {
    /// Takes over what the server lists now. With `hold`, a tool that has changed stays what it was.
    pub(crate) fn learn(&mut self, listed: &[KnownTool], hold: bool) {
        for known in &mut self.tools {
            known.listed = false;
        }
        for tool in listed {
            let Some(known) = self.tools.iter_mut().find(|known| known.name == tool.name) else {
                self.tools.push(tool.clone());
                continue;
            };
            known.listed = true;
            if known.hash.is_empty() {
                known.take(tool);
                continue;
            }
            if known.hash == tool.hash {
                if hold {
                    self.changed.remove(&tool.name);
                }
                known.definition.clone_from(&tool.definition);
                continue;
            }
            self.changed.insert(tool.name.clone());
            if !hold {
                known.take(tool);
            }
        }
    }

    /// Takes over what the server lists now, and takes it for granted from now on.
    pub(crate) fn accept(&mut self, listed: &[KnownTool]) {
        self.learn(listed, false);
        self.changed.clear();
    }

    /// What remains when a server is imported anew: the names that its tools have here, and nothing else.
    pub(crate) fn names_only(self) -> Self {
        let named = self.tools.into_iter().filter(|tool| tool.served_as.is_some());
        let tools = named.map(|tool| KnownTool { hash: String::new(), listed: false, definition: Value::Null, ..tool });
        Self { tools: tools.collect(), ..Self::default() }
    }

    /// Whether a tool is to be offered.
    pub(crate) fn offers(&self, tool: &KnownTool) -> bool {
        tool.listed && !self.hidden.contains(&tool.name)
    }

    /// Gives a tool another name here, unless its name is no longer `before`.
    pub(crate) fn rename(&mut self, original: &str, before: Option<&str>, name: &str) {
        let tool = self.tools.iter_mut().find(|tool| tool.name == original);
        if let Some(tool) = tool.filter(|tool| tool.served_as.as_deref() == before) {
            tool.served_as = Some(name.to_owned());
        }
    }
}

/// SHA-256 of what a tool's users rely on, whatever the order of the members.
fn hash(definition: &Value) -> String {
    let mut relied_on = Map::new();
    for field in FIELDS {
        relied_on.insert(field.to_owned(), sorted(definition.get(field).unwrap_or(&Value::Null)));
    }
    let mut text = String::new();
    for byte in Sha256::digest(Value::Object(relied_on).to_string().as_bytes()) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let mut names: Vec<&String> = members.keys().collect();
            names.sort_unstable();
            Value::Object(names.into_iter().map(|name| (name.clone(), members.get(name).map_or(Value::Null, sorted))).collect())
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

fn yes() -> bool {
    true
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_true(value: &bool) -> bool {
    *value
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    fn tool(name: &str, description: &str) -> KnownTool {
        KnownTool::read(json!({"name": name, "description": description, "inputSchema": {"type": "object"}})).expect("has a name")
    }

    fn offered(known: &KnownTools) -> impl Iterator<Item = &KnownTool> {
        known.tools.iter().filter(|tool| known.offers(tool))
    }

    fn descriptions(known: &KnownTools) -> Vec<&str> {
        offered(known).filter_map(|tool| tool.definition.get("description")?.as_str()).collect()
    }

    #[test]
    fn order_and_extras_change_nothing_and_descriptions_do() {
        let of = |definition| KnownTool::read(definition).expect("has a name").hash;
        let hash = of(json!({"name": "a", "inputSchema": {"type": "object", "properties": {}}}));
        assert_eq!(hash, of(json!({"inputSchema": {"properties": {}, "type": "object"}, "name": "a", "icons": []})));
        assert_ne!(hash, of(json!({"name": "a", "inputSchema": {"type": "object"}})));
        assert!(KnownTool::read(json!({"name": ""})).is_none() && KnownTool::read(json!("a")).is_none());
    }

    #[test]
    fn changes_show_and_are_held_back_only_if_asked() {
        for (hold, served) in [(false, ["new", "same"]), (true, ["old", "same"])] {
            let mut known = KnownTools::default();
            known.learn(&[tool("a", "old"), tool("b", "same")], hold);
            assert!(known.changed.is_empty());
            known.learn(&[tool("a", "new"), tool("b", "same")], hold);
            assert_eq!(known.changed, BTreeSet::from(["a".to_owned()]));
            assert_eq!(descriptions(&known), served);
            known.accept(&[tool("a", "new"), tool("b", "same")]);
            assert!(known.changed.is_empty());
            assert_eq!(descriptions(&known), ["new", "same"]);
        }
    }

    #[test]
    fn names_stay_over_changes_and_a_new_import() {
        let mut known = KnownTools::default();
        known.learn(&[tool("a", "old")], false);
        known.rename("a", None, "s_a");
        known.rename("a", None, "s_other");
        known.learn(&[tool("a", "new")], false);
        known.hidden.insert("a".to_owned());
        let mut anew = known.names_only();
        assert_eq!(offered(&anew).count(), 0);
        anew.learn(&[tool("a", "newest")], true);
        assert_eq!(descriptions(&anew), ["newest"]);
        assert!(anew.changed.is_empty());
        assert_eq!(anew.tools.first().and_then(|tool| tool.served_as.as_deref()), Some("s_a"));
    }

    #[test]
    fn hidden_and_vanished_tools_are_not_offered_and_not_forgotten() {
        let mut known = KnownTools::default();
        known.learn(&[tool("a", "one"), tool("b", "two")], false);
        known.hidden.insert("a".to_owned());
        known.learn(&[tool("a", "one")], false);
        assert_eq!(offered(&known).count(), 0);
        known.learn(&[tool("a", "one"), tool("b", "three")], false);
        assert_eq!(descriptions(&known), ["three"]);
        assert!(known.changed.contains("b"), "it changed while it was away");
    }
}
