//! `services`: containers that tools need. Not there yet.

use skillz_tool::{ErrorKind, ToolError};

use super::{Builtin, BuiltinOutcome, Hints};

pub(super) static BUILTIN: Builtin = Builtin::new(
    "services",
    "Docker services for tools (`requires_services`)",
    r#"{"type":"object","properties":{
        "action":{"enum":["define","list","start","stop","restart","status","logs","remove","prune"]},
        "name":{"type":"string"},
        "image":{"type":"string"},
        "ports":{"type":"array","items":{"type":"string"}},
        "env":{"type":"object"},
        "volumes":{"type":"array","items":{"type":"string"}},
        "network":{"type":"string"},
        "healthcheck":{"type":"object"},
        "command":{"type":"array","items":{"type":"string"}},
        "autostart":{"type":"boolean"},
        "description":{"type":"string"},
        "tail":{"type":"integer"},
        "overwrite":{"type":"boolean"},
        "remove_volumes":{"type":"boolean"},
        "include_volumes":{"type":"boolean"}
    },"required":["action"]}"#,
    Hints::OpenWorld,
    |_| Box::pin(std::future::ready(run())),
);

fn run() -> BuiltinOutcome {
    let message =
        "`services` is not there yet: this version of Skillz cannot run Docker services; start what your tool needs by hand";
    Err(ToolError::new(ErrorKind::Unavailable, message))
}
