//! What imported servers are told of this machine: where programs are, and which variables are set.

use std::sync::Arc;

use skillz_config::Resolved;
use skillz_process::Launcher;
use skillz_runtime_script::Interpreters;
use skillz_runtime_upstream::{FindProgram, FoundProgram, Start, UpstreamSettings};
use skillz_tool::{ErrorKind, ToolError};

use crate::wire::{Purpose, search_path};

/// The settings of imported servers. A command that is over soon starts none that it does not call.
pub(crate) fn settings(resolved: &Resolved, launcher: Launcher, purpose: Purpose) -> UpstreamSettings {
    let environment = &resolved.environment;
    let home = &resolved.settings.home;
    let search = search_path(environment);
    let roots = resolved.operator_roots();
    let working_directory = roots.into_iter().next().or_else(|| environment.home()).unwrap_or_else(|| home.clone());
    UpstreamSettings {
        directory: home.join("servers"),
        data_directory: home.join("servers"),
        skillz_home: home.clone(),
        user_home: environment.home(),
        launcher,
        environment: environment.for_tools(),
        search_path: search.places(),
        find_program: find_program(Interpreters::new(search)),
        working_directory,
        start: match purpose {
            Purpose::Serve => Start::AtOnce,
            Purpose::OneCommand => Start::OnDemand,
        },
    }
}

fn find_program(interpreters: Interpreters) -> FindProgram {
    Arc::new(move |command| {
        let Some(path) = interpreters.locate(command) else {
            let shown: String = command.chars().take(80).collect();
            let message = format!("The program `{shown}` was not found, neither on PATH nor where programs usually are");
            return Err(ToolError::new(ErrorKind::Unavailable, message)
                .with_hint("Install it (`npx` comes with Node.js, `uvx` with uv), or give its absolute path as `command`"));
        };
        let found = interpreters.resolve_words(&[command.to_owned()])?;
        Ok(FoundProgram { path, confined_path: found.program.clone(), visible: found.visible.clone() })
    })
}
