//! `import_tool`: tools from repositories, archives and folders. Not there yet.

use skillz_tool::{ErrorKind, ToolError};

use super::{Builtin, BuiltinOutcome, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "import_tool",
    "Import tools or skills from a git URL, gist, archive or folder",
    r#"{"type":"object","properties":{
        "source":{"type":"string"},
        "ref":{"type":"string"},
        "path":{"type":"string"},
        "overwrite":{"type":"boolean"},
        "dry_run":{"type":"boolean"}
    },"required":["source"]}"#,
    Hints::OpenWorld,
    |_| Box::pin(std::future::ready(run())),
);

fn run() -> BuiltinOutcome {
    let message = "`import_tool` is not there yet: this version of Skillz cannot import; copy the tool's folder into the tools folder, \
                   where it is loaded at once";
    Err(ToolError::new(ErrorKind::Unavailable, message))
}
