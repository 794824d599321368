//! Starts, confines, drains, times out, kills and reaps every process of the server.
//!
//! A [`Launcher`] owns one small helper process that forks all others, so that a fork never copies the
//! server, and so that everything dies with the server however it ends. Dropping a [`Child`] kills its whole tree.
//!
//! On Linux: server - helper - one supervisor for each tree - the program and whatever it starts. The helper and the
//! supervisors adopt orphans, so that neither a daemon nor a double fork gets away. Elsewhere a tree is a process group.
#![warn(missing_docs)]

mod child;
mod command;
mod drain;
mod error;
mod idle_memory;
mod launcher;
mod report;

#[cfg(target_os = "linux")]
mod helper;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod wire;

#[cfg(not(target_os = "linux"))]
mod portable;

#[cfg(target_os = "linux")]
use linux as backend;
#[cfg(not(target_os = "linux"))]
use portable as backend;

pub use child::{Child, ChildInput, ChildOutput, Exit, HostLine};
pub use command::{Command, ProcessLimits};
pub use drain::{Drained, Keep, OutputBudget, OutputExceeded, drain};
pub use error::ProcessError;
pub use idle_memory::let_go_of_idle_memory;
pub use launcher::Launcher;
pub use report::{LimitMethod, SandboxReport};

/// The hidden first argument that turns the binary into the helper process.
const HELPER_ARGUMENT: &str = "__launcher";

/// Entry of the helper process: the binary's `main` calls this first; it never returns if this process is a helper.
///
/// It must run before any thread is started, since the helper forks.
pub fn run_helper_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == HELPER_ARGUMENT) {
        #[cfg(target_os = "linux")]
        helper::run();
        #[cfg(not(target_os = "linux"))]
        std::process::exit(2);
    }
}

/// Lets a test binary be its own helper: `skillz_process::helper_entry!();` once at the top of the test file, then
/// `Launcher::new(std::env::current_exe()?, ...)`. The test harness owns `main`, so this hooks in before it.
#[macro_export]
macro_rules! helper_entry {
    () => {
        const _: () = {
            extern "C" fn enter() {
                $crate::run_helper_if_asked();
            }
            #[used]
            #[expect(unsafe_code, reason = "the linker's list of start-up functions is the only way in before the harness")]
            // SAFETY: the section holds pointers to functions of exactly this type, run once by the C runtime before `main`.
            #[unsafe(link_section = ".init_array")]
            static ENTER: extern "C" fn() = enter;
        };
    };
}
