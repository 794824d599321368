//! From a supervisor to the running program: everything between fork and exec.

use std::{
    convert::Infallible,
    ffi::{CString, OsStr},
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    pipe::{PipeFlags, pipe_with},
    process::{
        Pid, Resource, Rlimit, Signal, chdir, getpid, getppid, getrlimit, set_parent_process_death_signal, setrlimit, setsid,
    },
};

use super::limits::Keeper;
use crate::{
    Command, HostLine,
    sys::{self, Forked, StringTable},
    wire::{Failure, Purpose},
};

/// Files that a program may have open: what most systems give, and what keeps programs that close them all quick.
const SOFT_OPEN_FILES: u64 = 1024;
const HARD_OPEN_FILES: u64 = 16_384;

/// How to start a program.
pub(super) struct Start<'start> {
    pub(super) command: &'start Command,
    pub(super) purpose: Purpose,
    pub(super) streams: &'start Streams,
    /// Further descriptors, to be open from number 3 on.
    pub(super) more: &'start [OwnedFd],
    pub(super) keeper: &'start Keeper,
}

/// The program's three standard streams, and the line to its host where it has one.
pub(super) struct Streams {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) host: Vec<OwnedFd>,
}

/// A program that was forked and may run already.
pub(super) struct Starting {
    pub(super) pid: i32,
    /// Closed by a successful exec; otherwise carries the step that failed and why.
    outcome: OwnedFd,
}

/// Starts the program.
pub(super) fn start(start: &Start<'_>) -> Result<Starting, Failure> {
    let program = Program::new(start.command)?;
    let (outcome, outcome_write) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| setup("make a pipe", &error.into()))?;
    let supervisor = getpid();
    match sys::fork().map_err(|error| setup("fork", &error))? {
        Forked::Child => {
            drop(outcome);
            // Out of the way of the places that further descriptors take.
            let outcome_write = above(&outcome_write).unwrap_or(outcome_write);
            let failure = match become_program(start, &program, supervisor) {
                Err(failure) => failure,
                Ok(never) => match never {},
            };
            let _ = rustix::io::write(&outcome_write, &failure.encode());
            sys::exit(127)
        }
        Forked::Parent(pid) => Ok(Starting { pid, outcome }),
    }
}

impl Starting {
    /// Waits until the program runs; `false` if the server lost interest before, as it may when a file system hangs.
    pub(super) fn wait(&self, control: &OwnedFd) -> Result<bool, Failure> {
        loop {
            let mut descriptors = [PollFd::new(&self.outcome, PollFlags::IN), PollFd::new(control, PollFlags::IN)];
            if poll(&mut descriptors, None).is_err() {
                continue;
            }
            let [started, told] = descriptors.map(|descriptor| !descriptor.revents().is_empty());
            if started {
                return StepFailure::read(&self.outcome).map_or(Ok(true), |failure| Err(failure.into()));
            }
            if told {
                return Ok(false);
            }
        }
    }
}

fn setup(step: &str, error: &io::Error) -> Failure {
    Failure::Setup { message: format!("the helper could not {step}: {error}") }
}

/// Everything that exec needs, as C strings.
struct Program {
    path: CString,
    arguments: StringTable,
    environment: StringTable,
}

impl Program {
    fn new(command: &Command) -> Result<Self, Failure> {
        let path = c_string(command.program.as_os_str())?;
        let mut arguments = vec![path.clone()];
        for argument in &command.arguments {
            arguments.push(c_string(argument)?);
        }
        let mut environment = Vec::with_capacity(command.environment.len());
        for (name, value) in &command.environment {
            let mut line = name.clone();
            line.push("=");
            line.push(value);
            environment.push(c_string(&line)?);
        }
        Ok(Self { path, arguments: StringTable::new(arguments), environment: StringTable::new(environment) })
    }
}

fn c_string(text: &OsStr) -> Result<CString, Failure> {
    CString::new(text.as_bytes()).map_err(|_| Failure::Setup {
        message: "its path, an argument or a variable holds a zero byte, which no program can be given".to_owned(),
    })
}

/// The steps that may fail between fork and exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Prepare,
    Directory,
    Program,
}

struct StepFailure {
    step: Step,
    errno: i32,
}

impl StepFailure {
    fn new(step: Step, error: &io::Error) -> Self {
        Self { step, errno: error.raw_os_error().unwrap_or(libc::EIO) }
    }

    fn encode(&self) -> [u8; 5] {
        let [a, b, c, d] = self.errno.to_le_bytes();
        [self.step as u8, a, b, c, d]
    }

    fn read(pipe: &OwnedFd) -> Option<Self> {
        let mut bytes = [0; 5];
        loop {
            match rustix::io::read(pipe, &mut bytes) {
                Err(rustix::io::Errno::INTR) => {}
                Ok(5) => break,
                _ => return None,
            }
        }
        let [step, a, b, c, d] = bytes;
        let step = [Step::Prepare, Step::Directory, Step::Program].into_iter().find(|known| *known as u8 == step)?;
        Some(Self { step, errno: i32::from_le_bytes([a, b, c, d]) })
    }
}

impl From<StepFailure> for Failure {
    fn from(failure: StepFailure) -> Self {
        match failure.step {
            Step::Program => Self::Program { errno: failure.errno },
            Step::Directory => Self::Directory { errno: failure.errno },
            Step::Prepare => setup("prepare the process", &io::Error::from_raw_os_error(failure.errno)),
        }
    }
}

/// Runs in the forked child. Returns only if something failed.
fn become_program(start: &Start<'_>, program: &Program, supervisor: Pid) -> Result<Infallible, StepFailure> {
    prepare(start, supervisor).map_err(|error| StepFailure::new(Step::Prepare, &error))?;
    chdir(&start.command.directory).map_err(|error| StepFailure::new(Step::Directory, &error.into()))?;
    sys::close_others_on_exec();
    place(3, start.more).map_err(|error| StepFailure::new(Step::Prepare, &error))?;
    place(HostLine::READ, &start.streams.host).map_err(|error| StepFailure::new(Step::Prepare, &error))?;
    if start.purpose == Purpose::Probe {
        sys::exit(0);
    }
    sys::execute(&program.path, &program.arguments, &program.environment).map_err(|error| StepFailure::new(Step::Program, &error))
}

/// Numbers below are for descriptors that the program is to find.
const FREE_NUMBERS: i32 = 256;

fn above(descriptor: &OwnedFd) -> io::Result<OwnedFd> {
    Ok(rustix::io::fcntl_dupfd_cloexec(descriptor, FREE_NUMBERS)?)
}

/// Opens descriptors under the numbers from `first` on.
fn place(first: i32, descriptors: &[OwnedFd]) -> io::Result<()> {
    let copies: Vec<OwnedFd> = descriptors.iter().map(above).collect::<io::Result<_>>()?;
    (first..).zip(&copies).try_for_each(|(number, copy)| sys::place(copy.as_fd(), number))
}

fn prepare(start: &Start<'_>, supervisor: Pid) -> io::Result<()> {
    // The supervisor kills the tree when it ends, but it may be killed itself.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(supervisor) {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    // No controlling terminal: no child can ask anybody for a password.
    setsid()?;
    sys::place(start.streams.stdin.as_fd(), 0)?;
    sys::place(start.streams.stdout.as_fd(), 1)?;
    sys::place(start.streams.stderr.as_fd(), 2)?;
    limit_resources()?;
    start.keeper.apply()?;
    sys::unblock_signals();
    Ok(())
}

fn limit_resources() -> io::Result<()> {
    lower(Resource::Core, 0, 0)?;
    lower(Resource::Nofile, SOFT_OPEN_FILES, HARD_OPEN_FILES)
}

/// Sets a limit, never above the one in force.
pub(super) fn lower(resource: Resource, soft: u64, hard: u64) -> io::Result<()> {
    let current = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let hard = hard.min(current);
    setrlimit(resource, Rlimit { current: Some(soft.min(hard)), maximum: Some(hard) })?;
    Ok(())
}
