//! Says why a guest ended: each way of failing has its own message, with a next step.

use std::collections::HashSet;

use skillz_tool::{ErrorKind, NetworkPermission, ToolCall, ToolError};
use wasmtime::{FrameInfo, Trap, WasmBacktrace};

use super::{
    output::{GuestOutput, OutputTooLong},
    wasi::ProgramExit,
};

/// Bytes of stdout shown where stderr is empty.
const STDOUT_TAIL: usize = 4 << 10;
/// Longest text of a panic in the message, in bytes; the rest shows in the output below it.
const PANIC_LENGTH: usize = 1 << 10;

/// How a guest ended.
pub(crate) struct Ending {
    /// Why it failed; `None` if it did not.
    cause: Option<Cause>,
    /// Bytes it asked for when it hit the limit of its memory.
    refused_memory: Option<usize>,
    /// What it was told when it asked for a host it may not reach.
    refused_network: Option<String>,
}

enum Cause {
    Exit(i32),
    OutputTooLong(u64),
    StackOverflow,
    Abort,
    OutOfBounds,
    Trap(String),
    Start(String),
}

impl Ending {
    pub(crate) fn new(result: wasmtime::Result<()>, refused_memory: Option<usize>, refused_network: Option<String>) -> Self {
        Self { cause: result.err().and_then(|error| Cause::of(&error)), refused_memory, refused_network }
    }

    pub(crate) fn is_success(&self) -> bool {
        self.cause.is_none()
    }
}

impl Cause {
    fn of(error: &wasmtime::Error) -> Option<Self> {
        if let Some(ProgramExit(code)) = error.downcast_ref() {
            return (*code != 0).then_some(Self::Exit(*code));
        }
        if let Some(OutputTooLong { limit }) = error.downcast_ref() {
            return Some(Self::OutputTooLong(*limit));
        }
        let Some(trap) = error.downcast_ref::<Trap>() else {
            return Some(Self::Start(error.root_cause().to_string()));
        };
        Some(match trap {
            Trap::StackOverflow => Self::StackOverflow,
            Trap::UnreachableCodeReached => Self::Abort,
            Trap::MemoryOutOfBounds if below_zero(&format!("{error:?}")) => Self::StackOverflow,
            Trap::MemoryOutOfBounds if is_recursive(error) => Self::StackOverflow,
            Trap::MemoryOutOfBounds => Self::OutOfBounds,
            trap => Self::Trap(trap.to_string()),
        })
    }
}

/// Whether a memory fault lies just below address 0. Rust puts the stack at the start of the memory, so that a
/// stack that grows too long runs into negative addresses, the highest of the 4 GiB.
fn below_zero(text: &str) -> bool {
    const FAULT: &str = "memory fault at wasm address 0x";
    const FRAMES: u64 = 64 << 20;
    let digits = text.split_once(FAULT).map(|(_, rest)| rest.split(|letter: char| !letter.is_ascii_hexdigit()).next());
    let address = digits.flatten().and_then(|digits| u64::from_str_radix(digits, 16).ok());
    address.is_some_and(|address| address > (1 << 32) - FRAMES)
}

/// Whether the innermost calls are a few functions over and over.
fn is_recursive(error: &wasmtime::Error) -> bool {
    /// Frames that a backtrace has at most, and different functions among them.
    const FRAMES: usize = 20;
    const FUNCTIONS: usize = 6;
    let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() else { return false };
    let functions: HashSet<u32> = backtrace.frames().iter().map(FrameInfo::func_index).collect();
    backtrace.frames().len() >= FRAMES && functions.len() <= FUNCTIONS
}

/// The error of a guest that ran out of time.
pub(crate) fn timed_out(call: &ToolCall, output: &GuestOutput) -> ToolError {
    let limit = call.limits.timeout.as_millis();
    let message = format!("`{}` did not finish within {limit} ms and was stopped", call.tool.name);
    let stderr = output.finish_stderr();
    let words = if stderr.trim().is_empty() { last_of_stdout(output) } else { stderr };
    ToolError::new(ErrorKind::TimedOut, message)
        .with_output(words)
        .with_hint("Give it less to do, look for a loop that does not end, or raise `limits.timeout_ms`")
}

/// The error of a guest that says itself that it failed.
pub(crate) fn reported(call: &ToolCall, output: &GuestOutput, ending: &Ending, message: &str) -> ToolError {
    let kind = if ending.refused_network.is_some() { ErrorKind::Denied } else { ErrorKind::Failed };
    let error = ToolError::new(kind, format!("`{}` failed: {message}", call.tool.name));
    let error = error.with_output(output.finish_stderr());
    match refused_file(call, message) {
        Some(refusal) => refusal.with_output(message),
        None => error,
    }
}

/// The error of a guest that ended by itself.
pub(crate) fn describe(call: &ToolCall, output: &GuestOutput, ending: Ending) -> ToolError {
    let name = &call.tool.name;
    let stderr = output.finish_stderr();
    let stdout = last_of_stdout(output);
    let words = if stderr.trim().is_empty() { stdout.clone() } else { without_backtrace_note(&stderr) };
    let Some(cause) = ending.cause else { return ToolError::internal(format!("`{name}` did not fail")) };
    let explained =
        explain_by_refusal(call, &cause, ending.refused_memory, ending.refused_network, &format!("{words}\n{stdout}"));
    if let Some(error) = explained {
        return error.with_output(words);
    }
    let error = match cause {
        Cause::Exit(code) => ToolError::failed(format!("`{name}` ended with exit code {code}")),
        Cause::OutputTooLong(limit) => return output_too_long(call, limit),
        Cause::StackOverflow => ToolError::new(
            ErrorKind::LimitExceeded,
            format!("`{name}` overflowed its stack, most likely by a recursion that is too deep"),
        )
        .with_hint("Turn the recursion into a loop with a stack of its own, or keep large arrays in a `Vec`"),
        Cause::Abort => match panic_text(&stderr) {
            Some(text) => ToolError::failed(format!("`{name}` panicked: {text}")),
            None => ToolError::failed(format!("`{name}` aborted (it reached an `unreachable` instruction)")),
        },
        Cause::OutOfBounds => ToolError::failed(format!("`{name}` was stopped by a trap: out of bounds memory access"))
            .with_hint("Without `unsafe` code this is most often a stack that is too small: keep large arrays in a `Vec`"),
        Cause::Trap(text) => ToolError::failed(format!("`{name}` was stopped by a trap: {text}")),
        Cause::Start(text) => ToolError::failed(format!("`{name}` could not be run: {text}")),
    };
    // A file outside of the folders looks to a guest as if it were not there.
    let not_found = error.hint.is_none() && names_error(&words, NO_ENTRY);
    let error = error.with_output(words);
    if not_found { error.with_hint(visible_folders(call)) } else { error }
}

/// A failure that came of something the guest was refused is told as that refusal.
fn explain_by_refusal(
    call: &ToolCall,
    cause: &Cause,
    refused_memory: Option<usize>,
    refused_network: Option<String>,
    words: &str,
) -> Option<ToolError> {
    let name = &call.tool.name;
    if matches!(cause, Cause::OutputTooLong(_) | Cause::StackOverflow) {
        return None;
    }
    if let Some(asked) = refused_memory {
        let limit = call.limits.memory_bytes >> 20;
        let message = format!(
            "`{name}` needed more memory than its limit of {limit} MB (it asked for {} MB in all)",
            asked.div_ceil(1 << 20)
        );
        return Some(
            ToolError::new(ErrorKind::LimitExceeded, message)
                .with_hint("Process the data in smaller pieces, or raise `limits.memory_mb`"),
        );
    }
    if let Some(message) = refused_network {
        return Some(ToolError::new(ErrorKind::Denied, format!("`{name}` failed after a refused request. {message}")));
    }
    refused_file(call, words).or_else(|| sockets(call, words))
}

// Error numbers of WASI preview 1.
const NO_ACCESS: u8 = 2;
const NO_ENTRY: u8 = 44;
const NOT_SUPPORTED: u8 = 58;
const NOT_PERMITTED: u8 = 63;
const READ_ONLY_SYSTEM: u8 = 69;
const NOT_CAPABLE: u8 = 76;

/// Whether a text holds a system error as Rust displays it, or as it shows it for debugging.
fn names_error(words: &str, code: u8) -> bool {
    words.contains(&format!("(os error {code})")) || words.contains(&format!("Os {{ code: {code}, "))
}

/// Whether a program's words tell of a file that it may not reach. The texts are those of the C library.
fn refused_file(call: &ToolCall, words: &str) -> Option<ToolError> {
    const OUTSIDE: &str = "failed to find a pre-opened file descriptor";
    let any = |codes: &[u8]| codes.iter().any(|code| names_error(words, *code));
    let not_granted = words.contains(OUTSIDE) || any(&[NOT_CAPABLE]);
    let nothing_granted = call.grants.folders.is_empty() && any(&[NO_ENTRY]);
    let read_only = any(&[NOT_PERMITTED, READ_ONLY_SYSTEM, NO_ACCESS]);
    let name = &call.tool.name;
    if not_granted || nothing_granted {
        let message = format!("`{name}` tried to open a file or folder outside of what it may see");
        return Some(ToolError::new(ErrorKind::Denied, message).with_hint(visible_folders(call)));
    }
    if read_only && !call.grants.folders.is_empty() {
        let message = format!("`{name}` was refused access to a file: it is outside of its folders, or read-only");
        return Some(
            ToolError::new(ErrorKind::Denied, message)
                .with_hint("Build it again with `\"mode\": \"rw\"` for the folder in `permissions.fs` if it has to write"),
        );
    }
    None
}

/// What a tool sees of the file system, and how it would see more.
fn visible_folders(call: &ToolCall) -> String {
    let granted: Vec<String> = call.grants.folders.iter().map(|folder| folder.path.display().to_string()).collect();
    let seen = if granted.is_empty() {
        "It sees no files at all".to_owned()
    } else {
        format!("It sees only `{}`", granted.join("`, `"))
    };
    format!("{seen}. Build it again with the folder in `permissions.fs`, such as {{\"path\": \"$ROOT\", \"mode\": \"ro\"}}")
}

/// Whether a program's words tell of sockets, which guests do not have.
fn sockets(call: &ToolCall, words: &str) -> Option<ToolError> {
    let unsupported = words.contains("operation not supported on this platform") || names_error(words, NOT_SUPPORTED);
    if !unsupported {
        return None;
    }
    let message =
        format!("`{}` used something that WASM tools do not have, such as sockets, processes or threads", call.tool.name);
    let hint = if call.grants.network == NetworkPermission::default() {
        "For HTTP use `skillz::http`, with the host in `permissions.network`; for the rest write a script tool"
    } else {
        "For HTTP use `skillz::http`; for the rest write a script tool"
    };
    Some(ToolError::new(ErrorKind::Denied, message).with_hint(hint))
}

fn output_too_long(call: &ToolCall, limit: u64) -> ToolError {
    ToolError::new(ErrorKind::LimitExceeded, format!("`{}` printed more than {limit} bytes and was stopped", call.tool.name))
        .with_hint("Print less, such as a summary or a part, or raise `limits.max_output_bytes`")
}

fn last_of_stdout(output: &GuestOutput) -> String {
    let stdout = output.take_stdout();
    let start = stdout.len().saturating_sub(STDOUT_TAIL);
    String::from_utf8_lossy(stdout.get(start..).unwrap_or_default()).into_owned()
}

/// Takes out Rust's advice on an environment variable that nobody can set here.
fn without_backtrace_note(stderr: &str) -> String {
    let lines: Vec<&str> = stderr.lines().filter(|line| !line.starts_with("note: run with `RUST_BACKTRACE=1`")).collect();
    lines.join("\n")
}

/// The last panic in stderr: its text and where it was, in one piece.
fn panic_text(stderr: &str) -> Option<String> {
    let (_, rest) = stderr.rsplit_once("panicked at ")?;
    let (place, text) = rest.split_once('\n').unwrap_or((rest, ""));
    let text = text.split("\nnote: run with").next().unwrap_or_default().trim();
    let place = place.trim_end().trim_end_matches(':');
    let end = text.floor_char_boundary(PANIC_LENGTH);
    Some(format!("{} (at {place})", text.get(..end).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_text_is_the_message_with_its_place() {
        let stderr = "before\n\nthread 'main' (1) panicked at src.rs:2:5:\nindex out of bounds: the len is 3\n\
                      note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n";
        assert_eq!(panic_text(stderr).as_deref(), Some("index out of bounds: the len is 3 (at src.rs:2:5)"));
        assert_eq!(panic_text("nothing of the kind"), None);
    }

    #[test]
    fn only_faults_just_below_zero_are_stack_overflows() {
        let fault =
            |address: &str| below_zero(&format!("x\nmemory fault at wasm address 0x{address} in linear memory of size 0x110000"));
        assert!(fault("fffffff0"));
        assert!(!fault("20000000"));
        assert!(!below_zero("another error"));
    }
}
