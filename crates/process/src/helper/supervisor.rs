//! One tree's supervisor: starts the program, waits for it, and sees to it that the tree ends with it.
//!
//! It lives exactly as long as the tree. The server's end of the control socket is the tree's life line: when it
//! closes, for whatever reason, the tree is killed.

use std::{
    fs::File,
    io::{self, Write},
    os::fd::{AsFd, OwnedFd},
};

use rustix::{
    event::{PollFd, PollFlags, poll},
    process::{Pid, Signal, WaitOptions, WaitStatus, set_child_subreaper, set_parent_process_death_signal, wait},
};
use skillz_sandbox::{
    bubblewrap,
    builtin::{Bounds, Confinement, Layout},
};

use super::{
    cgroup::{Cgroups, Group},
    exec, kill,
    limits::Keeper,
    requests::{self, Descriptors},
};
use crate::{
    Command, Exit, sys,
    wire::{self, Event, Facts, Failure, Place, Request},
};

/// What a supervisor works with.
pub(super) struct Means {
    /// Where requests for its place arrive.
    pub(super) line: OwnedFd,
    pub(super) place: Place,
    /// For those that were forked into namespaces.
    pub(super) confinement: Option<Confinement>,
    pub(super) cgroups: Cgroups,
    /// The tree's number.
    pub(super) number: u64,
    /// Takes the number when a request was taken.
    pub(super) tell_taken: OwnedFd,
}

/// What was made ahead of the request.
struct Prepared {
    signals: OwnedFd,
    group: Group,
    /// The badness by which the kernel chooses whom to kill for memory; open, since it is out of sight once confined.
    badness: Option<File>,
    layout: Option<(Confinement, Layout)>,
}

/// Runs a supervisor in a freshly forked process: prepares everything, waits for a request, carries it out.
pub(super) fn run(means: Means) -> ! {
    // Whoever only waits ends with the helper. A helper that ended before this was said has closed its lines.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let Means { line, place, confinement, cgroups, number, tell_taken } = means;
    let prepared = prepare(place, confinement, &cgroups, number);
    let Some(descriptors) = requests::receive_request(&line) else { sys::exit(0) };
    let _ = set_parent_process_death_signal(None);
    let _ = rustix::io::write(&tell_taken, &number.to_le_bytes());
    drop((line, tell_taken));
    let Descriptors { control, stdin, stdout, stderr, host } = descriptors;
    let streams = exec::Streams { stdin, stdout, stderr, host };
    if let Err(failure) = prepared.and_then(|prepared| supervise(&control, streams, prepared)) {
        tell(&control, &Event::Failed(failure));
    }
    sys::exit(0)
}

fn prepare(place: Place, confinement: Option<Confinement>, cgroups: &Cgroups, number: u64) -> Result<Prepared, Failure> {
    let setup = |error: io::Error| Failure::Setup { message: format!("the helper could not prepare for it: {error}") };
    set_child_subreaper(Some(rustix::process::getpid())).map_err(|error| setup(error.into()))?;
    let signals = sys::watch_signals(&[libc::SIGCHLD]).map_err(setup)?;
    let group = cgroups.enter_new(number);
    let badness = File::options().write(true).open("/proc/self/oom_score_adj").ok();
    let layout = match (place, confinement) {
        (Place::Confined { network }, Some(confinement)) => {
            let layout = confinement.lay_out(network).map_err(|error| Failure::Sandbox { reason: error.to_string() })?;
            Some((confinement, layout))
        }
        _ => None,
    };
    Ok(Prepared { signals, group, badness, layout })
}

fn supervise(control: &OwnedFd, streams: exec::Streams, prepared: Prepared) -> Result<(), Failure> {
    let Some(Request { command, confiner, purpose }) = receive_request(control) else { return Ok(()) };
    let Prepared { signals, group, badness, layout } = prepared;
    let confined = layout.is_some();
    if confined != matches!(Place::of(command.policy.as_ref(), confiner), Place::Confined { .. }) {
        return Err(Failure::Setup { message: "the request came to the wrong place".to_owned() });
    }
    let mut keeper = Keeper::new(command.limits.clone(), group, confined);
    let landlock_abi = confine(layout, &command, &streams)?;
    let (command, more) = if confined { (command, Vec::new()) } else { wrap(command)? };
    // Whoever is started has to be chosen before the supervisor, which has to tell about it.
    set_badness(badness.as_ref(), b"300");
    let starting = exec::start(&exec::Start { command: &command, purpose, streams: &streams, more: &more, keeper: &keeper });
    drop(more);
    set_badness(badness.as_ref(), b"0");
    let starting = starting?;
    // The program alone holds the streams now, so that they end with it.
    drop(streams);
    let exit = if starting.wait(control)? {
        let (memory, processes) = keeper.methods();
        tell(control, &Event::Started(Facts { memory, processes, landlock_abi }));
        follow(control, &signals, starting.pid, &mut keeper)
    } else {
        Exit::Signal(libc::SIGKILL)
    };
    keeper.freeze();
    if confined {
        kill::end_namespace();
    } else {
        kill::end_descendants();
    }
    tell(control, &Event::Exited(keeper.verdict(exit)));
    Ok(())
}

/// Confines this process and so all that it starts. Gives the version of Landlock in force.
fn confine(layout: Option<(Confinement, Layout)>, command: &Command, streams: &exec::Streams) -> Result<u8, Failure> {
    let (Some((confinement, layout)), Some(policy)) = (layout, &command.policy) else { return Ok(0) };
    let bounds = Bounds { temporary_bytes: command.limits.memory_bytes };
    let streams: Vec<&OwnedFd> = [&streams.stdin, &streams.stdout, &streams.stderr].into_iter().chain(&streams.host).collect();
    let entered = confinement.enter(layout, policy, bounds, &streams);
    let entered = entered.map_err(|error| Failure::Sandbox { reason: error.to_string() })?;
    Ok(u8::try_from(entered.landlock_abi).unwrap_or(u8::MAX))
}

/// Puts the sandbox's program in place of a program that it is to confine, with the descriptors that it needs.
fn wrap(command: Command) -> Result<(Command, Vec<OwnedFd>), Failure> {
    let Some(policy) = &command.policy else { return Ok((command, Vec::new())) };
    let inner = bubblewrap::Inner {
        program: &command.program,
        arguments: &command.arguments,
        environment: &command.environment,
        directory: &command.directory,
    };
    let wrapped = bubblewrap::wrap(policy, inner).map_err(|error| Failure::Sandbox { reason: error.to_string() })?;
    let command = Command {
        program: wrapped.program,
        arguments: wrapped.arguments,
        environment: Vec::new(),
        directory: "/".into(),
        policy: None,
        limits: command.limits,
    };
    Ok((command, wrapped.descriptors))
}

fn set_badness(badness: Option<&File>, value: &[u8]) {
    if let Some(mut file) = badness {
        // Where it cannot be set, the largest is chosen all the same.
        let _ = file.write_all(value);
    }
}

/// Waits for the end of the root, or for the server's word or end. Gives how the tree ended.
fn follow(control: &OwnedFd, signals: &OwnedFd, root: i32, keeper: &mut Keeper) -> Exit {
    let interval = keeper.interval();
    loop {
        let mut descriptors = [PollFd::new(control, PollFlags::IN), PollFd::new(signals, PollFlags::IN)];
        if poll(&mut descriptors, interval.as_ref()).is_err() {
            continue;
        }
        let [told, died] = descriptors.map(|descriptor| !descriptor.revents().is_empty());
        if died {
            let mut records = [0_u8; 1024];
            while rustix::io::read(signals, &mut records).is_ok_and(|count| count > 0) {}
            if let Some(exit) = reap(root) {
                return exit;
            }
        }
        if told && !obey(control, keeper) {
            return Exit::Signal(libc::SIGKILL);
        }
        if interval.is_some()
            && let Some(exit) = keeper.look()
        {
            return exit;
        }
    }
}

/// Does what the server says; `false` if that is the end.
fn obey(control: &OwnedFd, keeper: &mut Keeper) -> bool {
    let mut word = [0_u8; 1];
    match rustix::io::read(control, &mut word) {
        Ok(1) if word == [wire::ASK_MEMORY_KILLS] => {
            let count = u32::try_from(keeper.memory_kills()).unwrap_or(u32::MAX);
            tell(control, &Event::MemoryKills(count));
            true
        }
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => true,
        // The word to kill, or the server's end.
        _ => false,
    }
}

/// Reaps the dead; the root's end if it is among them.
fn reap(root: i32) -> Option<Exit> {
    let mut exit = None;
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if Pid::from_raw(root) == Some(pid) {
            exit = Some(exit_of(status));
        }
    }
    exit
}

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Code(-1),
    }
}

fn receive_request(control: &OwnedFd) -> Option<Request> {
    let mut message = Vec::new();
    let mut chunk = [0; 16 * 1024];
    loop {
        if let Some(body) = wire::message_body(&message) {
            return wire::decode_request(body);
        }
        match rustix::io::read(control, &mut chunk) {
            Ok(count @ 1..) => message.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            Err(rustix::io::Errno::INTR) => {}
            _ => return None,
        }
    }
}

pub(super) fn tell(control: &OwnedFd, event: &Event) {
    let mut message = &*wire::encode_event(event);
    while !message.is_empty() {
        let flags = rustix::net::SendFlags::NOSIGNAL;
        match rustix::net::send(control.as_fd(), message, flags) {
            Ok(count) => message = message.get(count..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            // The server is gone, or does not want to know.
            Err(_) => return,
        }
    }
}
