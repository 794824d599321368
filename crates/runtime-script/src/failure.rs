//! Words the failures of script calls: what happened, the script's own last lines, and what to do next.

use skillz_process::{Exit, ProcessError};
use skillz_tool::{EffectiveLimits, ErrorKind, ToolError};

use crate::message::ReplyError;

/// The call ran out of time.
pub(crate) fn timed_out(name: &str, limits: &EffectiveLimits) -> ToolError {
    let message = format!("`{name}` was ended after {}, its time limit", seconds(limits.timeout));
    ToolError::new(ErrorKind::TimedOut, message)
        .with_hint("Give it less to do, or register it again with a higher `limits.timeout_ms`")
}

/// The call printed too much.
pub(crate) fn too_much_output(name: &str, limits: &EffectiveLimits) -> ToolError {
    let message = format!("`{name}` was ended because it printed more than {} bytes, its output limit", limits.max_output_bytes);
    ToolError::new(ErrorKind::LimitExceeded, message)
        .with_hint("Have it print less, or write to a file below `context.data_dir`, or raise `limits.max_output_bytes`")
}

/// The process ended otherwise than with exit code 0.
pub(crate) fn ended(name: &str, exit: Exit, limits: &EffectiveLimits) -> ToolError {
    match exit {
        Exit::MemoryLimit => out_of_memory(name, limits),
        Exit::ProcessLimit => {
            let message =
                format!("`{name}` was ended because it had more than {} processes and threads, its limit", limits.max_processes);
            ToolError::new(ErrorKind::LimitExceeded, message)
                .with_hint("Have it start fewer at once, or register it again with a higher `limits.max_processes`")
        }
        Exit::Code(code) => {
            let error = ToolError::failed(format!("`{name}` ended with exit code {code}"));
            match code {
                126 => error.with_hint("Exit code 126: a command was found and could not be run; look at its permissions"),
                127 => {
                    error.with_hint("Exit code 127: a command was not found; is it installed, and on the PATH of the sandbox?")
                }
                137 => error.with_hint("Exit code 137: a process was killed, perhaps for its use of memory (`limits.memory_mb`)"),
                _ => error,
            }
        }
        Exit::Signal(signal) => ToolError::failed(format!("`{name}` was ended by signal {signal} ({})", signal_name(signal))),
    }
}

/// The tree used more memory than it may.
pub(crate) fn out_of_memory(name: &str, limits: &EffectiveLimits) -> ToolError {
    let message = format!("`{name}` was ended because it used more than {} MiB of memory, its limit", limits.memory_bytes >> 20);
    ToolError::new(ErrorKind::LimitExceeded, message)
        .with_hint("Have it work on less at a time, or register it again with a higher `limits.memory_mb`")
}

/// The script replied with an error of its own.
pub(crate) fn replied(name: &str, error: ReplyError) -> ToolError {
    let ReplyError { message, data } = error;
    let message = message.filter(|message| !message.trim().is_empty());
    let text = message.unwrap_or_else(|| data.as_ref().map_or_else(|| "it gave no reason".to_owned(), ToString::to_string));
    let mut failure = ToolError::failed(format!("`{name}` failed: {text}"));
    failure.data = data;
    failure
}

/// A process could not be started.
pub(crate) fn not_started(name: &str, error: ProcessError) -> ToolError {
    match error {
        ProcessError::Sandbox { reason } => ToolError::new(ErrorKind::Unavailable, format!("`{name}` was not run. {reason}")),
        ProcessError::Start { program, source } => {
            let message = format!("`{name}` was not run: `{program}` could not be started: {source}");
            ToolError::new(ErrorKind::Unavailable, message)
        }
        ProcessError::Launcher(reason) => {
            ToolError::internal(format!("`{name}` was not run: the helper that starts processes is gone: {reason}"))
        }
    }
}

/// Adds the script's last lines: those of stderr, or of stdout where stderr is blank.
pub(crate) fn with_last_lines(error: ToolError, stderr: &str, stdout: &str) -> ToolError {
    if error.output.is_some() {
        return error;
    }
    error.with_output(if stderr.trim().is_empty() { stdout } else { stderr })
}

fn seconds(duration: std::time::Duration) -> String {
    let milliseconds = duration.as_millis();
    if milliseconds.is_multiple_of(1000) { format!("{} s", milliseconds / 1000) } else { format!("{milliseconds} ms") }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        4 => "SIGILL, an illegal instruction",
        6 => "SIGABRT, it aborted",
        7 => "SIGBUS, a bad memory access",
        8 => "SIGFPE, a division by zero or the like",
        9 => "SIGKILL, it was killed",
        11 => "SIGSEGV, a bad memory access",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU, too much processor time",
        25 => "SIGXFSZ, a file grew too large",
        31 => "SIGSYS, a system call that the sandbox forbids",
        _ => "see `kill -l`",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_end_has_words_of_its_own() {
        let limits = EffectiveLimits { timeout: Duration::from_millis(1500), ..EffectiveLimits::with_memory_mb(64) };
        for (error, kind, part) in [
            (timed_out("t", &limits), ErrorKind::TimedOut, "`t` was ended after 1500 ms, its time limit"),
            (too_much_output("t", &limits), ErrorKind::LimitExceeded, "more than 64000000 bytes"),
            (ended("t", Exit::MemoryLimit, &limits), ErrorKind::LimitExceeded, "more than 64 MiB of memory"),
            (ended("t", Exit::Code(3), &limits), ErrorKind::Failed, "exit code 3"),
            (ended("t", Exit::Signal(11), &limits), ErrorKind::Failed, "SIGSEGV"),
            (replied("t", ReplyError { message: Some("no".into()), data: None }), ErrorKind::Failed, "`t` failed: no"),
            (replied("t", ReplyError { message: None, data: None }), ErrorKind::Failed, "gave no reason"),
        ] {
            assert_eq!(error.kind, kind);
            assert!(error.message.contains(part), "{error}");
        }
        let error = with_last_lines(ToolError::failed("x"), " \n", "from stdout");
        assert_eq!(error.output.as_deref(), Some("from stdout"));
    }
}
