//! `import_mcp`: tools of other MCP servers. Not there yet.

use skillz_tool::{ErrorKind, ToolError};

use super::{Builtin, BuiltinOutcome, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "import_mcp",
    "Add another MCP server (`command` or `url`); its tools become <name>_<tool>",
    r#"{"type":"object","properties":{
        "name":{"type":"string"},
        "command":{"type":"string"},
        "args":{"type":"array","items":{"type":"string"}},
        "env":{"type":"object"},
        "url":{"type":"string"},
        "headers":{"type":"object"},
        "description":{"type":"string"},
        "pin":{"type":"boolean"},
        "sandbox":{"type":"boolean"},
        "overwrite":{"type":"boolean"},
        "action":{"enum":["add","remove","list","refresh"]}
    },"required":["name"]}"#,
    Hints::OpenWorld,
    |_| Box::pin(std::future::ready(run())),
);

fn run() -> BuiltinOutcome {
    let message = "`import_mcp` is not there yet: this version of Skillz cannot connect to other MCP servers; add the server to your \
                   client itself";
    Err(ToolError::new(ErrorKind::Unavailable, message))
}
