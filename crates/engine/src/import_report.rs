//! What an import tells: what came, from where, what each tool asks for, and what was refused and why.

use skillz_json::{Map, Value, json};
use skillz_registry::{DiscoveredSkill, DiscoveredTool, Discovery, SkillShelf};
use skillz_tool::{ErrorKind, ToolError};

use crate::{list::object, publish::kind_name};

/// Refusals that a failure's text spells out; the rest is counted.
const SHOWN_REFUSALS: usize = 10;

/// What became of a source.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) tools: Vec<Map<String, Value>>,
    pub(crate) skills: Vec<Map<String, Value>>,
    pub(crate) refused: Vec<Refusal>,
}

/// What was not imported, and why.
#[derive(Debug)]
pub(crate) struct Refusal {
    name: Option<String>,
    path: String,
    error: ToolError,
}

impl Refusal {
    pub(crate) fn of_tool(tool: &DiscoveredTool, error: ToolError) -> Self {
        Self { name: Some(tool.name.to_string()), path: tool.path.clone(), error }
    }

    pub(crate) fn of_skill(skill: &DiscoveredSkill, error: ToolError) -> Self {
        Self { name: Some(skill.skill.name.clone()), path: skill.path.clone(), error }
    }

    fn to_value(&self) -> Value {
        let mut entry = Map::new();
        if let Some(name) = &self.name {
            entry.insert("name".to_owned(), json!(name));
        }
        if !self.path.is_empty() {
            entry.insert("path".to_owned(), json!(self.path));
        }
        entry.insert("reason".to_owned(), json!(self.error.text()));
        Value::Object(entry)
    }
}

impl Report {
    /// Begins with what cannot be used at all.
    pub(crate) fn of_faults(found: &Discovery) -> Self {
        let refused = found.faults.iter().map(|fault| Refusal {
            name: fault.name.clone(),
            path: fault.path.clone(),
            error: ToolError::invalid(fault.reason.clone()),
        });
        Self { refused: refused.collect(), ..Self::default() }
    }

    /// The answer; an error if nothing came of it.
    pub(crate) fn answer(
        self,
        from: &str,
        provenance: Map<String, Value>,
        mut notes: Vec<String>,
        dry_run: bool,
    ) -> Result<Value, ToolError> {
        if self.tools.is_empty() && self.skills.is_empty() {
            return Err(self.failure(from));
        }
        let asking: Vec<&str> =
            self.tools.iter().filter(|tool| asks(tool)).filter_map(|tool| tool.get("name")?.as_str()).collect();
        if !asking.is_empty() {
            let what = if dry_run { "would get" } else { "have" };
            notes.push(format!(
                "{} ask for permissions, and {what} them as far as the server's policy goes: look at `permissions`{}",
                quoted(&asking),
                if dry_run { "" } else { "; `delete_tool` takes a tool away" }
            ));
        }
        let mut answer = object(json!({"source": provenance, "tools": self.tools, "skills": self.skills}));
        if !self.refused.is_empty() {
            answer.insert("refused".to_owned(), self.refused.iter().map(Refusal::to_value).collect());
        }
        if !notes.is_empty() {
            answer.insert("notes".to_owned(), json!(notes));
        }
        if dry_run {
            answer.insert("dry_run".to_owned(), json!(true));
        }
        Ok(Value::Object(answer))
    }

    fn failure(self, from: &str) -> ToolError {
        if let [only] = self.refused.as_slice() {
            let mut error = only.error.clone();
            error.message = format!("Nothing was imported from `{from}`. {}", error.message);
            return error;
        }
        let kind = self.refused.first().map_or(ErrorKind::InvalidInput, |refusal| refusal.error.kind);
        let mut message = format!("Nothing was imported from `{from}`, for {} reasons:", self.refused.len());
        for refusal in self.refused.iter().take(SHOWN_REFUSALS) {
            let subject = refusal.name.as_deref().unwrap_or(&refusal.path);
            message.push_str(&format!("\n- `{subject}`: {}", refusal.error.message));
        }
        if self.refused.len() > SHOWN_REFUSALS {
            message.push_str(&format!("\n- and {} more", self.refused.len() - SHOWN_REFUSALS));
        }
        let hint = self.refused.iter().find_map(|refusal| refusal.error.hint.clone());
        let error = ToolError::new(kind, message);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// What a tool is and asks for.
pub(crate) fn of_tool(tool: &DiscoveredTool, shelf: &SkillShelf) -> Map<String, Value> {
    let manifest = &tool.manifest;
    let dependencies: Vec<&String> = manifest.dependencies.iter().chain(&manifest.wasm_dependencies).collect();
    let mut entry = object(json!({
        "name": tool.name.as_str(),
        "kind": kind_name(manifest.tool_type),
        "version": manifest.version,
        "description": manifest.description.lines().next().unwrap_or_default(),
        "permissions": manifest.permissions,
        "dependencies": dependencies,
    }));
    entry.retain(|_, value| !value.is_null());
    if !tool.path.is_empty() {
        entry.insert("path".to_owned(), json!(tool.path));
    }
    if !manifest.requires_services.is_empty() {
        entry.insert("requires_services".to_owned(), json!(manifest.requires_services));
    }
    if let Some(skills) = manifest.extra.get("requires_skills") {
        let missing: Vec<&str> =
            skills.as_array().into_iter().flatten().filter_map(Value::as_str).filter(|name| shelf.get(name).is_none()).collect();
        if !missing.is_empty() {
            entry.insert("missing_skills".to_owned(), json!(missing));
        }
        entry.insert("requires_skills".to_owned(), skills.clone());
    }
    entry
}

/// What a skill is.
pub(crate) fn of_skill(skill: &DiscoveredSkill) -> Map<String, Value> {
    let mut entry = object(json!({
        "name": skill.skill.name,
        "description": skill.skill.description,
        "files": skill.file_count(),
        "uri": format!("skillz://skills/{}/SKILL.md", skill.skill.name),
    }));
    if !skill.path.is_empty() {
        entry.insert("path".to_owned(), json!(skill.path));
    }
    entry
}

fn asks(tool: &Map<String, Value>) -> bool {
    tool.get("permissions").and_then(Value::as_object).is_some_and(|permissions| !permissions.is_empty())
}

fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
