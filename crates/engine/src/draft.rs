//! Checks of a manifest before anything is made from it: all faults at once.

use skillz_json::Value;
use skillz_tool::{CompiledSchema, Limits, Manifest, ToolError};

use crate::{examples, policy::check_permissions};

/// Checks what the publisher gave. Source, interpreter and dependencies are the runtime's business.
pub(crate) fn check(manifest: &Manifest) -> Result<(), ToolError> {
    let mut faults = Vec::new();
    if manifest.description.trim().is_empty() {
        faults.push(
            "`description` is empty: it is what a model chooses the tool by, so say what the tool does and for what".to_owned(),
        );
    }
    faults.extend(look_at_schemas(manifest).0);
    for (index, example) in manifest.examples.iter().enumerate() {
        faults.extend(examples::check(example).map(|reason| format!("`examples[{index}]` {reason}")));
    }
    faults.extend(check_permissions(&manifest.permissions));
    faults.extend(limit_faults(&manifest.limits));
    refuse(manifest, &faults)
}

/// Checks the schemas alone, once a runtime has completed them; gives a sentence for each part that cannot be checked.
pub(crate) fn check_schemas(manifest: &Manifest) -> Result<Vec<String>, ToolError> {
    let (faults, unchecked) = look_at_schemas(manifest);
    refuse(manifest, &faults)?;
    Ok(unchecked)
}

fn refuse(manifest: &Manifest, faults: &[String]) -> Result<(), ToolError> {
    match faults {
        [] => Ok(()),
        [fault] => Err(ToolError::invalid(format!("`{}` cannot be published: {fault}", manifest.name))),
        faults => {
            let list = faults.join("\n- ");
            Err(ToolError::invalid(format!("`{}` cannot be published, for {} reasons:\n- {list}", manifest.name, faults.len())))
        }
    }
}

/// The faults of the schemas, and a sentence for each part that cannot be checked.
fn look_at_schemas(manifest: &Manifest) -> (Vec<String>, Vec<String>) {
    let (mut faults, mut unchecked) = (Vec::new(), Vec::new());
    let mut compile = |field: &str, schema: &Value| match CompiledSchema::new(schema.clone()).unchecked_parts() {
        Ok(parts) => {
            unchecked.extend(parts.iter().map(|part| format!("{field}: {part}")));
            None
        }
        Err(error) => Some(format!("`{field}`: {error}")),
    };
    if let Some(schema) = &manifest.input_schema {
        if !schema.is_object() {
            faults
                .push("`input_schema` must be a JSON Schema object, such as {\"type\":\"object\",\"properties\":{}}".to_owned());
        } else if !may_be_object(schema) {
            faults.push("`input_schema` must describe an object: arguments are always an object, so put other values into a property of it".to_owned());
        } else {
            faults.extend(compile("input_schema", schema));
        }
    }
    if let Some(schema) = &manifest.output_schema {
        if schema.is_object() {
            faults.extend(compile("output_schema", schema));
        } else {
            faults.push("`output_schema` must be a JSON Schema object; leave it out if any result will do".to_owned());
        }
    }
    (faults, unchecked)
}

/// Whether the root's `type`, where it has one, takes an object.
fn may_be_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        _ => true,
    }
}

fn limit_faults(limits: &Limits) -> Vec<String> {
    let given = [
        ("timeout_ms", limits.timeout_ms),
        ("memory_mb", limits.memory_mb),
        ("max_output_bytes", limits.max_output_bytes),
        ("max_processes", limits.max_processes.map(u64::from)),
        ("max_result_bytes", limits.max_result_bytes),
    ];
    given
        .into_iter()
        .filter(|(_, value)| *value == Some(0))
        .map(|(name, _)| format!("`limits.{name}` is 0; give at least 1, or leave it out for the default"))
        .collect()
}

#[cfg(test)]
mod tests {
    use skillz_json::json;
    use skillz_tool::ToolKind;

    use super::*;

    fn faults(fields: &Value) -> String {
        let mut whole = json!({"name": "probe", "description": "Probes", "tool_type": "script"});
        whole.as_object_mut().expect("an object").extend(fields.as_object().cloned().expect("an object"));
        let manifest: Manifest = skillz_json::from_value(whole).expect("a manifest");
        check(&manifest).err().map(|error| error.message).unwrap_or_default()
    }

    #[test]
    fn sound_manifests_pass() {
        for fields in [
            json!({}),
            json!({"input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}}),
            json!({"input_schema": {"anyOf": [{"type": "object"}, {"type": "object"}]}}),
            json!({"input_schema": {"properties": {}}}),
            json!({"input_schema": {"type": ["object", "null"]}, "output_schema": {"type": "array"}}),
            json!({"permissions": {"env": ["API_KEY"], "fs": [{"path": "$ROOT/data"}, {"path": "$DATA"}, {"path": "/srv"}]}}),
            json!({"limits": {"timeout_ms": 1}, "examples": [{"is_error": true}]}),
        ] {
            assert_eq!(faults(&fields), "", "{fields}");
        }
    }

    #[test]
    fn each_fault_has_its_sentence() {
        for (fields, sentence) in [
            (json!({"description": " \n"}), "`description` is empty"),
            (json!({"input_schema": true}), "`input_schema` must be a JSON Schema object"),
            (json!({"input_schema": {"type": "array"}}), "`input_schema` must describe an object"),
            (
                json!({"input_schema": {"type": "object", "properties": {"a": {"type": "strin"}}}}),
                "`input_schema`: The schema is not valid",
            ),
            (json!({"output_schema": []}), "`output_schema` must be a JSON Schema object"),
            (json!({"output_schema": {"type": 5}}), "`output_schema`: The schema is not valid"),
            (json!({"examples": [{"matches": "("}]}), "`examples[0]` has no valid regular expression"),
            (json!({"examples": [{"result": 1}, {}]}), "`examples[1]` expects nothing"),
            (json!({"permissions": {"env": ["SKILLZ_AUTH_TOKEN"]}}), "the server's own token"),
            (json!({"permissions": {"env": ["A=1"]}}), "no name of an environment variable"),
            (json!({"permissions": {"fs": [{"path": "data"}]}}), "neither absolute nor starts with `$ROOT`"),
            (json!({"permissions": {"fs": [{"path": "$SKILLZ_HOME/tools"}]}}), "the server's own data folder"),
            (json!({"permissions": {"fs": [{"path": "$ROOT/../x"}]}}), "leads upwards"),
            (json!({"permissions": {"fs": [{"path": "$ROOTS/x"}]}}), "neither absolute nor starts with `$ROOT`"),
            (json!({"limits": {"memory_mb": 0}}), "`limits.memory_mb` is 0"),
        ] {
            let found = faults(&fields);
            assert!(found.contains(sentence), "{fields} gave {found}");
        }
    }

    #[test]
    fn all_faults_come_at_once() {
        let mut manifest = Manifest::new("probe", "", ToolKind::Script);
        manifest.input_schema = Some(json!({"type": "string"}));
        manifest.limits.timeout_ms = Some(0);
        let error = check(&manifest).expect_err("three faults");
        assert!(error.message.starts_with("`probe` cannot be published, for 3 reasons:\n- "), "{error}");
        assert_eq!(error.message.lines().count(), 4);
    }
}
