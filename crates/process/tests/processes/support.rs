//! What the tests of this crate share.
#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on should say so")]

use std::{
    future::Future,
    path::Path,
    time::{Duration, Instant},
};

use skillz_process::{Command, Keep, Launcher, ProcessLimits, drain};
use skillz_sandbox::SandboxKind;

/// For what must come true soon; generous, for loaded machines.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// A launcher whose helper is this test binary, without a sandbox.
pub(crate) fn launcher() -> Launcher {
    launcher_with(SandboxKind::None)
}

/// A launcher whose helper is this test binary.
pub(crate) fn launcher_with(sandbox: SandboxKind) -> Launcher {
    Launcher::new(std::env::current_exe().expect("it runs"), sandbox)
}

/// A command without limits, in `/`, with a plain PATH.
pub(crate) fn command(program: &Path, arguments: &[&str]) -> Command {
    Command {
        program: program.to_owned(),
        arguments: arguments.iter().map(Into::into).collect(),
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        directory: "/".into(),
        policy: None,
        limits: ProcessLimits::default(),
    }
}

/// A line of shell.
pub(crate) fn shell(script: &str) -> Command {
    command("/bin/bash".as_ref(), &["-c", script])
}

/// Runs a command to its end; gives what it printed, stderr after stdout.
pub(crate) async fn output(launcher: &Launcher, command: Command) -> String {
    let mut child = launcher.spawn(command).await.expect("it starts");
    child.stdin = None;
    let (stdout, stderr) = (child.stdout.take().expect("out"), child.stderr.take().expect("err"));
    let (stdout, stderr) = tokio::join!(drain(stdout, Keep::Head(1 << 20), None), drain(stderr, Keep::Head(1 << 20), None));
    child.wait().await.expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    text(stdout.expect("no budget").bytes) + &text(stderr.expect("no budget").bytes)
}

/// Waits until `check` holds; panics with `what` if it does not soon.
pub(crate) async fn until(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !check() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Fails if `future` takes too long.
pub(crate) async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(SOON, future).await.unwrap_or_else(|_| panic!("not in time: {what}"))
}
