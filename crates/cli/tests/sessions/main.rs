//! Sessions through the real binary: what a client, a shell or a crash does to it, and what must hold.
//!
//! One program for all of them, so that they are linked once. Rules of the parts are tested in their crates.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test says so by failing, and reads its surroundings"
)]

mod arguments;
mod commands;
mod crash;
mod doctor;
mod exact_values;
mod fuzz;
mod http;
mod importing;
mod install;
mod life;
mod load;
mod locks;
mod names;
mod notices;
mod old_tools;
mod processes;
mod programs;
mod sharing;
mod start;
mod stdin;
mod surface;
mod toolbox;
mod upstream_faults;
mod upstream_http;
mod upstreams;

use std::path::Path;

use serde_json::{Value, json};
use skillz_test_support::{Era, Home, Run, TestServer};

/// The binary under test.
fn skillz() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_skillz"))
}

/// A server of a client with a handshake.
fn server(home: &Home) -> TestServer {
    Run::new(skillz(), home).connect(Era::NEWEST_HANDSHAKE)
}

/// The arguments of `register_script` for a plain bash program that runs no time at all.
fn bash_tool(name: &str, code: &str) -> Value {
    json!({"name": name, "description": format!("The tool {name} of a test."), "code": code, "interpreter": "bash"})
}

/// The arguments of `build_tool` for a module that copies its arguments to its result, from WebAssembly text.
fn echo_module(name: &str) -> Value {
    json!({"name": name, "description": "Gives back its arguments.", "wat": include_str!("echo.wat")})
}
