//! `build_tool`: Rust, or a ready module, to a WASM tool.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use skillz_tool::{Origin, SourceCode, ToolError, ToolKind};

use super::{Builtin, BuiltinCall, BuiltinOutcome, Hints, publishing::Described};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "build_tool",
    "Compile Rust to a sandboxed WASM tool. `code`: `#[skillz::tool] fn run(text: String, n: Option<u32>) -> Result<Out, String>` \
     (serde types), or `fn main()` with JSON arguments on stdin, result on stdout. `examples` \
     ({arguments, result|contains|matches|is_error}) are tests that must pass. More: resource skillz://guide",
    r#"{"type":"object","properties":{
        "name":{"type":"string"},
        "description":{"type":"string"},
        "code":{"type":"string"},
        "wat":{"type":"string"},
        "wasm_base64":{"type":"string"},
        "dependencies":{"type":"array","items":{"type":"string"},"description":"Crates: name@1.2[feature]"},
        "input_schema":{"type":"object"},
        "output_schema":{"type":"object"},
        "annotations":{"type":"object"},
        "examples":{"type":"array","items":{"type":"object"}},
        "permissions":{"type":"object","description":"{network: bool|[hosts], fs: [{path, mode: ro|rw}], env: [names]}"},
        "limits":{"type":"object","description":"{timeout_ms, memory_mb}"},
        "tags":{"type":"array","items":{"type":"string"}},
        "pinned":{"type":"boolean"},
        "overwrite":{"type":"boolean"},
        "dry_run":{"type":"boolean"}
    },"required":["name","description"]}"#,
    Hints::OpenWorld,
    |call| Box::pin(run(call)),
);

#[derive(Debug, Deserialize)]
struct Arguments {
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    wat: Option<String>,
    #[serde(default)]
    wasm_base64: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
}

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let described: Described = call.read(&BUILTIN)?;
    let Arguments { code, wat, wasm_base64, dependencies } = call.read(&BUILTIN)?;
    let source = match (code, wat, wasm_base64) {
        (Some(code), None, None) => SourceCode::Text(code),
        (None, Some(wat), None) => SourceCode::Wat(wat),
        (None, None, Some(module)) => SourceCode::Module(decode(&module)?),
        _ => return Err(ToolError::invalid("`build_tool` needs exactly one of `code` (Rust), `wat` and `wasm_base64`")),
    };
    described.publish(call, (ToolKind::Wasm, Origin::Build), source, |manifest| manifest.wasm_dependencies = dependencies).await
}

/// Decodes a module; line breaks are common in base64 and harmless.
fn decode(text: &str) -> Result<Vec<u8>, ToolError> {
    let plain: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(plain).map_err(|error| ToolError::invalid(format!("`wasm_base64` is not base64: {error}")))
}
