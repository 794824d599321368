//! What the tests of this crate share.

use std::{
    fs,
    path::Path,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use skillz_process::{Command, Exit, Keep, Launcher, ProcessError, ProcessLimits, drain};
use skillz_sandbox::SandboxKind;

/// For what must come true soon; generous, for loaded machines.
const SOON: Duration = Duration::from_secs(20);

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
    output_and_exit(launcher, command).await.expect("it runs").0
}

/// Runs a command to its end; gives what it printed, stderr after stdout, and how it ended.
pub(crate) async fn output_and_exit(launcher: &Launcher, command: Command) -> Result<(String, Exit), ProcessError> {
    let mut child = launcher.spawn(command).await?;
    child.stdin = None;
    let (stdout, stderr) = (child.stdout.take().expect("out"), child.stderr.take().expect("err"));
    let (stdout, stderr) = tokio::join!(drain(stdout, Keep::Head(1 << 20), None), drain(stderr, Keep::Head(1 << 20), None));
    let exit = child.wait().await?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ok((text(stdout.expect("no budget").bytes) + &text(stderr.expect("no budget").bytes), exit))
}

/// Waits until `check` holds; panics with `what` if it does not soon.
pub(crate) fn until(what: &str, mut check: impl FnMut() -> bool) {
    let deadline = Instant::now() + SOON;
    while !check() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A number of seconds to sleep that no other process sleeps for: it finds its processes.
pub(crate) fn marker() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("300.{}{:03}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Processes with `marker` in their command lines.
pub(crate) fn alive(marker: &str) -> Vec<u32> {
    let has_marker =
        |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| String::from_utf8_lossy(&line).contains(marker));
    all_processes().into_iter().filter(has_marker).collect()
}

/// All processes below `root`, whatever their state.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all_processes().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(above) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, parent)| *parent == above).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").expect("it is mounted").flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

fn parent(pid: u32) -> Option<u32> {
    stat_field(pid, 1)?.parse().ok()
}

/// A field of a process's `stat` line, counted from its state.
pub(crate) fn stat_field(pid: u32, index: usize) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(index).map(str::to_owned)
}

/// The name of a process.
pub(crate) fn name_of(pid: u32) -> String {
    fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// File descriptors of this process.
pub(crate) fn count_descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("it is mounted").count()
}
