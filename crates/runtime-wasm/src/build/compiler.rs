//! Runs compilers and their kin: confined or not, with a time limit, their output kept within bounds.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use skillz_process::{Command, Drained, Exit, Keep, Launcher, ProcessLimits, drain};
use skillz_sandbox::Policy;
use skillz_tool::{ErrorKind, ToolError};
use tokio::io::{AsyncBufReadExt, BufReader};

/// Bytes kept of a compiler's output. A message is a few kB; hundreds of them are of no use to anybody.
const KEPT: usize = 8 << 20;
/// Processes of one build. Cargo runs a compiler for each core, and each of those a few threads.
const MAX_PROCESSES: u32 = 512;
/// Largest file that a build may write.
const MAX_FILE_BYTES: u64 = 2 << 30;
/// Longest run of a program that only says something about itself, or downloads.
const PLAIN_TIMEOUT: Duration = Duration::from_mins(10);

/// A program to run to its end.
pub(crate) struct Run<'a> {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) directory: PathBuf,
    pub(crate) policy: Option<Policy>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) timeout: Duration,
    /// Sees each line of stderr as it comes.
    pub(crate) on_line: Option<&'a (dyn Fn(&str) + Send + Sync)>,
}

/// What came of it.
pub(crate) struct Ran {
    pub(crate) exit: Exit,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

impl Run<'_> {
    /// A program of the toolchain's own, unconfined.
    pub(crate) fn plain(program: &Path, arguments: &[&str], environment: Vec<(OsString, OsString)>, directory: &Path) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments.iter().map(OsString::from).collect(),
            environment,
            directory: directory.to_owned(),
            policy: None,
            memory_bytes: None,
            timeout: PLAIN_TIMEOUT,
            on_line: None,
        }
    }
}

impl Ran {
    pub(crate) fn success(&self) -> bool {
        self.exit.success()
    }

    pub(crate) fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

/// Runs a program. Dropping the future kills it with everything it started.
pub(crate) async fn run(launcher: &Launcher, run: Run<'_>) -> Result<Ran, ToolError> {
    let name = run.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    std::fs::create_dir_all(&run.directory)
        .map_err(|error| ToolError::internal(format!("The folder `{}` could not be made: {error}", run.directory.display())))?;
    let command = Command {
        program: run.program,
        arguments: run.arguments,
        environment: run.environment,
        directory: run.directory,
        policy: run.policy,
        limits: ProcessLimits {
            memory_bytes: run.memory_bytes,
            max_processes: run.memory_bytes.map(|_| MAX_PROCESSES),
            max_file_bytes: run.memory_bytes.map(|_| MAX_FILE_BYTES),
        },
    };
    let unavailable = |error: skillz_process::ProcessError| ToolError::new(ErrorKind::Unavailable, error.to_string());
    let mut child = launcher.spawn(command).await.map_err(unavailable)?;
    child.stdin = None;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let finished = tokio::time::timeout(run.timeout, async {
        // The pipes are read beside the waiting: once the program has ended, nothing holds them open.
        tokio::join!(child.wait(), keep(stdout), lines(stderr, run.on_line))
    });
    let Ok((exit, stdout, stderr)) = finished.await else {
        child.kill().await;
        let seconds = run.timeout.as_secs();
        return Err(ToolError::new(ErrorKind::TimedOut, format!("`{name}` did not finish within {seconds} s and was stopped"))
            .with_hint(
                "If the machine was busy, send it again. Otherwise look for constants or \
                 macros whose evaluation does not end, or use fewer dependencies",
            ));
    };
    let exit = exit.map_err(unavailable)?;
    if exit == Exit::MemoryLimit {
        let limit = run.memory_bytes.unwrap_or_default() >> 20;
        return Err(ToolError::new(
            ErrorKind::LimitExceeded,
            format!("`{name}` needed more than {limit} MB of memory and was stopped"),
        )
        .with_hint("Look for macros or constants that grow without end, or use smaller dependencies"));
    }
    Ok(Ran { exit, stdout, stderr })
}

async fn keep(reader: Option<Box<dyn skillz_process::ChildOutput>>) -> Vec<u8> {
    let Some(reader) = reader else { return Vec::new() };
    drain(reader, Keep::Head(KEPT), None).await.map_or_else(|_| Vec::new(), |Drained { bytes, .. }| bytes)
}

async fn lines(reader: Option<Box<dyn skillz_process::ChildOutput>>, on_line: Option<&(dyn Fn(&str) + Send + Sync)>) -> Vec<u8> {
    let Some(on_line) = on_line else { return keep(reader).await };
    let Some(reader) = reader else { return Vec::new() };
    let mut reader = BufReader::new(reader);
    let (mut all, mut line) = (Vec::new(), Vec::new());
    while let Ok(1..) = reader.read_until(b'\n', &mut line).await {
        on_line(&String::from_utf8_lossy(&line));
        if all.len() < KEPT {
            all.extend_from_slice(&line);
        }
        line.clear();
    }
    all
}
