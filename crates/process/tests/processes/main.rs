//! Real processes: started, followed, limited, confined, ended.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test that cannot go on should say so, and its servers talk over stdout"
)]

mod confinement;
mod death;
mod host;
mod limits;
mod server;
mod spawn;
mod support;

skillz_process::helper_entry!();

/// Servers are started as this binary, too; see `server`.
const _: () = {
    extern "C" fn enter() {
        server::run_if_asked();
    }
    #[used]
    #[expect(unsafe_code, reason = "the only way in before the test harness")]
    // SAFETY: the section holds pointers to functions of exactly this type, run once by the C runtime before `main`.
    #[unsafe(link_section = ".init_array")]
    static ENTER: extern "C" fn() = enter;
};
