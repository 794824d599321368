//! `import_tool`: tools and skills from repositories, gists, archives and folders.

use skillz_engine::ImportRequest;

use super::{Builtin, BuiltinCall, BuiltinOutcome, BuiltinReply, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "import_tool",
    "Import tools or skills: git URL, `gist:<id>`, .tar.gz/.zip, SKILL.md or folder",
    r#"{"type":"object","properties":{
        "source":{"type":"string"},
        "ref":{"type":"string"},
        "path":{"type":"string"},
        "overwrite":{"type":"boolean"},
        "dry_run":{"type":"boolean"}
    },"required":["source"]}"#,
    Hints::OpenWorld,
    |call| Box::pin(run(call)),
);

async fn run(call: BuiltinCall) -> BuiltinOutcome {
    let request: ImportRequest = call.read(&BUILTIN)?;
    call.engine.import(request, call.client).await.map(BuiltinReply::Value)
}
