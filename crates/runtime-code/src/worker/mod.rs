//! The worker process: runs one program after the other, each in an interpreter of its own.
//!
//! It is the skillz binary itself, started with a hidden argument. Whatever a program does to its interpreter
//! (overflow the stack, exhaust memory, find a fault in it) costs this process and one run, never the server.
//! The process has no business with files, the network or other processes, and gives the right to them up.

mod edits;
mod javascript;
mod limits;
mod link;
mod python;

use std::{
    io::{self, Write},
    process,
    sync::mpsc,
    thread,
};

use crate::{
    message::{self, Failure, FromWorker, PreparedProgram, Program, ToWorker},
    request::Language,
    worker::link::Link,
};
use skillz_json::Value;

/// The hidden first argument that turns the binary into a worker.
pub(crate) const WORKER_ARGUMENT: &str = "__code_worker";
/// Stack of the interpreters' thread: deep recursion ends with an exception long before. Untouched pages cost nothing.
const STACK_BYTES: usize = 256 << 20;

/// What a worker says, and then ends, where its system calls cannot be limited.
pub(crate) const UNCONFINED: &str = "the worker's system calls could not be limited";

/// What a program came to.
pub(crate) enum Outcome {
    Done(Value),
    Failed(Failure),
    /// It needs what the embedded interpreter lacks; nothing has run.
    Unsupported(String),
    /// It was only prepared.
    Prepared(PreparedProgram),
}

/// Entry of a worker process: the binary's `main` calls this first; it never returns if this process is a worker.
pub fn run_worker_if_asked() {
    if std::env::args_os().nth(1).is_some_and(|argument| argument == WORKER_ARGUMENT) {
        work();
        process::exit(0);
    }
}

/// Lets a test binary be its own worker: `skillz_runtime_code::worker_entry!();` once at the top of the test file, then
/// `CodeSettings { program: std::env::current_exe()?, ... }`. The test harness owns `main`, so this hooks in before it.
#[macro_export]
macro_rules! worker_entry {
    () => {
        const _: () = {
            extern "C" fn enter() {
                $crate::run_worker_if_asked();
            }
            #[used]
            #[expect(unsafe_code, reason = "the linker's list of start-up functions is the only way in before the harness")]
            // SAFETY: the section holds pointers to functions of exactly this type, run once by the C runtime before `main`.
            #[unsafe(link_section = ".init_array")]
            static ENTER: extern "C" fn() = enter;
        };
    };
}

/// Serves until the server closes the pipe.
fn work() {
    let (sender, incoming) = mpsc::channel();
    let interpreter =
        thread::Builder::new().name("interpreter".to_owned()).stack_size(STACK_BYTES).spawn(move || interpret(incoming));
    limits::watch_memory();
    if let Err(error) = limits::confine() {
        // What cannot be confined does not run.
        let _ = writeln!(io::stderr(), "{UNCONFINED}: {error}");
        process::exit(1);
    }
    if interpreter.is_err() {
        return;
    }
    let mut input = io::stdin().lock();
    // The end of the stream ends the process, whatever the interpreter is doing.
    while let Ok(Some(message)) = message::read::<ToWorker>(&mut input) {
        if sender.send(message).is_err() {
            return;
        }
    }
}

/// Ends the process with its thread, however that ends: a panic must not leave the server waiting.
struct EndWithThread;

impl Drop for EndWithThread {
    fn drop(&mut self) {
        process::exit(101);
    }
}

fn interpret(incoming: mpsc::Receiver<ToWorker>) {
    let _end = EndWithThread;
    let mut link = Link::new(incoming);
    while let Some(message) = link.next_program() {
        let (program, only_prepare) = match message {
            ToWorker::Run(program) => (program, false),
            ToWorker::Prepare(program) => (program, true),
            ToWorker::Reply(_) => continue,
        };
        link.begin(&program);
        limits::begin(program.memory_bytes);
        let outcome = if only_prepare { javascript::prepare_only(&program) } else { run(&program, &mut link) };
        limits::end();
        let run = program.run;
        link.end(&match outcome {
            Outcome::Done(result) => FromWorker::Done { run, result },
            Outcome::Failed(failure) => FromWorker::Failed { run, failure },
            Outcome::Unsupported(reason) => FromWorker::Unsupported { run, reason },
            Outcome::Prepared(prepared) => FromWorker::Prepared { run, prepared },
        });
    }
    // The server's messages have ended.
    process::exit(0)
}

fn run(program: &Program, link: &mut Link) -> Outcome {
    match program.language {
        Language::Python => python::run(program, link),
        Language::JavaScript | Language::TypeScript => javascript::run(program, link),
    }
}
