//! Client configs in JSON, with comments and trailing commas where their clients allow them.

use jsonc_parser::{
    ParseOptions,
    cst::{CstInputValue, CstRootNode},
};

use super::entry::Entry;

/// How a client writes its servers down.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// The member of the root that holds all servers by name.
    pub(super) section: &'static str,
    /// Whether each server says `"type": "stdio"`.
    pub(super) names_transport: bool,
}

pub(super) fn with_server(config: &str, name: &str, entry: &Entry, form: Form) -> Result<String, String> {
    let text = if config.trim().is_empty() { "{}\n" } else { config };
    let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| format!("it is no JSON ({error})"))?;
    let object = root.object_value_or_create().ok_or("its outermost value is no object")?;
    let servers = object.object_value_or_create(form.section).ok_or_else(|| format!("its `{}` is no object", form.section))?;
    let wanted = server(entry, form);
    match servers.get(name) {
        // Members that the user added, such as a time-out, stay.
        Some(existing) => {
            let existing = existing.object_value().ok_or_else(|| format!("its `{}.{name}` is no object", form.section))?;
            for (key, value) in wanted {
                let same = existing.get(&key).and_then(|member| member.value()).and_then(|value| value.to_serde_value());
                if same == Some(plain(&value)) {
                    continue;
                }
                match existing.get(&key) {
                    Some(member) => member.set_value(value),
                    None => {
                        existing.append(&key, value);
                    }
                }
            }
        }
        None => {
            servers.append(name, CstInputValue::Object(wanted));
        }
    }
    Ok(root.to_string())
}

fn server(entry: &Entry, form: Form) -> Vec<(String, CstInputValue)> {
    let mut members = Vec::new();
    if form.names_transport {
        members.push(("type".to_owned(), CstInputValue::from("stdio")));
    }
    members.push(("command".to_owned(), CstInputValue::from(entry.command.as_str())));
    members.push(("args".to_owned(), CstInputValue::Array(entry.arguments.iter().map(|text| text.as_str().into()).collect())));
    if !entry.environment.is_empty() {
        let variables = entry.environment.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
        members.push(("env".to_owned(), CstInputValue::Object(variables)));
    }
    members
}

/// The value without its form, to compare it with what is there.
fn plain(value: &CstInputValue) -> serde_json::Value {
    match value {
        CstInputValue::Null => serde_json::Value::Null,
        CstInputValue::Bool(value) => (*value).into(),
        CstInputValue::Number(text) => serde_json::from_str(text).unwrap_or_default(),
        CstInputValue::String(text) => text.as_str().into(),
        CstInputValue::Array(items) => items.iter().map(plain).collect(),
        CstInputValue::Object(members) => {
            serde_json::Value::Object(members.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Form = Form { section: "mcpServers", names_transport: false };
    const ZED: Form = Form { section: "context_servers", names_transport: false };

    fn entry() -> Entry {
        Entry {
            command: "/bin/skillz".to_owned(),
            arguments: Vec::new(),
            environment: vec![("SKILLZ_HOME".to_owned(), "/s".to_owned())],
        }
    }

    fn read(text: &str) -> serde_json::Value {
        let root = CstRootNode::parse(text, &ParseOptions::default()).expect("still JSON");
        root.to_serde_value().expect("a value")
    }

    #[test]
    fn an_empty_config_becomes_a_whole_one() {
        let after = with_server("", "skillz", &entry(), Form { names_transport: true, ..PLAIN }).expect("made");
        assert_eq!(
            read(&after),
            serde_json::json!({"mcpServers": {"skillz": {"type": "stdio", "command": "/bin/skillz", "args": [], "env": {"SKILLZ_HOME": "/s"}}}})
        );
    }

    #[test]
    fn comments_and_everything_else_stay() {
        let before = "// my settings\n{\n  \"theme\": \"dark\", // at night\n  \"context_servers\": {\n    /* mine */\n    \"other\": {\"command\": \"x\"},\n  },\n}\n";
        let after = with_server(before, "skillz", &entry(), ZED).expect("added");
        for kept in ["// my settings", "// at night", "/* mine */", "\"other\": {\"command\": \"x\"}"] {
            assert!(after.contains(kept), "{kept} is gone from:\n{after}");
        }
        assert_eq!(read(&after)["context_servers"]["skillz"]["command"], "/bin/skillz");
        assert_eq!(with_server(&after, "skillz", &entry(), ZED).expect("again"), after, "the second time changes nothing");
    }

    #[test]
    fn what_the_user_added_to_the_server_stays() {
        let before = r#"{"mcpServers": {"skillz": {"command": "/old", "timeout": 5}}}"#;
        let after = read(&with_server(before, "skillz", &entry(), PLAIN).expect("changed"));
        assert_eq!(after["mcpServers"]["skillz"]["timeout"], 5);
        assert_eq!(after["mcpServers"]["skillz"]["command"], "/bin/skillz");
    }

    #[test]
    fn what_is_not_understood_is_left_alone() {
        for broken in ["{", "[]", "{\"mcpServers\": []}", "{\"mcpServers\": {\"skillz\": 1}}"] {
            assert!(with_server(broken, "skillz", &entry(), PLAIN).is_err(), "{broken}");
        }
    }
}
