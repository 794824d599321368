//! `register_script`: a program in any language to a tool.

use serde::Deserialize;
use skillz_json::Value;
use skillz_tool::{Isolation, Origin, Protocol, SourceCode, ToolError, ToolKind};

use super::{Builtin, BuiltinCall, BuiltinOutcome, Hints, publishing::Described};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "register_script",
    "Make a tool from a script. Best: Python `def run(text: str, n: int = 1) -> dict` (hints and docstring give the schema; \
     `import skillz` for memory, other tools, progress, questions) or JavaScript `export async function run({text})`. Any other \
     program: its arguments are one line of JSON on stdin (then EOF), or `argv`; it prints its result. Arguments as in build_tool",
    r#"{"type":"object","properties":{
        "name":{"type":"string"},
        "description":{"type":"string"},
        "code":{"type":"string"},
        "interpreter":{"type":"string","description":"python3 (default), node, bash, ..."},
        "extension":{"type":"string"},
        "dependencies":{"type":"array","items":{"type":"string"},"description":"pip or npm packages"},
        "input_schema":{"type":"object"},
        "output_schema":{"type":"object"},
        "annotations":{"type":"object"},
        "examples":{"type":"array","items":{"type":"object"}},
        "permissions":{"type":"object"},
        "limits":{"type":"object"},
        "requires_services":{"type":"array","items":{"type":"string"}},
        "protocol":{"enum":["function","json","jsonrpc"]},
        "argv":{"type":"array"},
        "isolation":{"enum":["call","worker"]},
        "working_directory":{"enum":["$ROOT"]},
        "tags":{"type":"array","items":{"type":"string"}},
        "pinned":{"type":"boolean"},
        "overwrite":{"type":"boolean"},
        "dry_run":{"type":"boolean"}
    },"required":["name","description","code"]}"#,
    Hints::OpenWorld,
    |call| Box::pin(run(call)),
);

/// Longest file extension, in bytes.
const EXTENSION_LENGTH: usize = 10;

#[derive(Debug, Deserialize)]
struct Arguments {
    code: String,
    #[serde(default)]
    interpreter: Option<String>,
    #[serde(default)]
    extension: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default)]
    requires_services: Vec<String>,
    #[serde(default)]
    protocol: Option<Protocol>,
    #[serde(default)]
    argv: Option<Value>,
    #[serde(default)]
    isolation: Option<Isolation>,
    #[serde(default)]
    working_directory: Option<String>,
}

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let arguments: Arguments = call.read(&BUILTIN)?;
    let described: Described = call.read(&BUILTIN)?;
    let entry_file = arguments.extension.as_deref().map(entry_file).transpose()?;
    let source = SourceCode::Text(arguments.code);
    described
        .publish(call, (ToolKind::Script, Origin::Register), source, |manifest| {
            manifest.entry_file = entry_file;
            manifest.interpreter = arguments.interpreter;
            manifest.protocol = arguments.protocol;
            manifest.argv = arguments.argv;
            manifest.isolation = arguments.isolation;
            manifest.working_directory = arguments.working_directory;
            manifest.dependencies = arguments.dependencies;
            manifest.requires_services = arguments.requires_services;
        })
        .await
}

/// The source's file name for an extension, given with or without its dot.
fn entry_file(extension: &str) -> Result<String, ToolError> {
    let plain = extension.strip_prefix('.').unwrap_or(extension);
    if plain.is_empty() || plain.len() > EXTENSION_LENGTH || !plain.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        let message = format!(
            "The `extension` `{}` is none: give letters and digits, such as `py`",
            extension.chars().take(40).collect::<String>()
        );
        return Err(ToolError::invalid(message));
    }
    Ok(format!("main.{plain}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_can_name_nothing_but_an_extension() {
        assert_eq!(entry_file(".rb").as_deref(), Ok("main.rb"));
        assert_eq!(entry_file("py").as_deref(), Ok("main.py"));
        for extension in ["", ".", "/../x", "a/b", "a.b", "..", "x\0", "abcdefghijk"] {
            assert!(entry_file(extension).is_err(), "{extension}");
        }
    }
}
