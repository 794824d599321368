//! Runs scripts in any language: process scripts, started anew for each call, and function scripts in warm workers.
//!
//! A call goes `runtime` → `plan` (what the script is) → `install` and `stage` (what it needs) → `launch` (its command)
//! → `process_script` or `worker`. Both speak the same line protocol (`message`, `conversation`). Every process is
//! started through `skillz-process`; nothing here reads the server's environment or knows of MCP.

mod argv;
mod conversation;
mod discard;
mod failure;
mod folder;
mod install;
mod interpreter;
mod kit;
mod language;
mod launch;
mod lines;
mod log;
mod message;
mod plan;
mod prepare;
mod process_script;
mod program;
mod refusal;
mod runtime;
mod settings;
mod source;
mod stage;
mod worker;

pub use interpreter::{Interpreter, Interpreters, SearchPath};
pub use program::{CheckedLanguage, Program, ProgramEnd, ProgramLanguage};
pub use runtime::ScriptRuntime;
pub use settings::{ScriptBounds, ScriptSettings};
