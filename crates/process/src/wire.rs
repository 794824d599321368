//! What server and supervisor say to each other over a tree's control socket.
//!
//! Both are the same binary, so the form is free to change: lengths and numbers are little-endian, in a fixed order.
//! The server sends one request, then perhaps single bytes; the supervisor sends [`Event`]s.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::PathBuf,
};

use skillz_sandbox::Policy;

use crate::{Command, Exit, LimitMethod, ProcessLimits};

/// The server's word to kill the tree now.
pub(crate) const KILL: u8 = b'k';

/// The server's question how often the kernel has killed for memory.
pub(crate) const ASK_MEMORY_KILLS: u8 = b'm';

/// Bytes of the length that stands before each message.
const LENGTH_BYTES: usize = 4;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Run the program.
    Run,
    /// Set everything up, execute nothing.
    Probe,
}

/// Who confines a tree that has a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Confiner {
    /// The supervisor itself.
    Builtin,
    /// The program `bwrap`, which the supervisor starts in place of the program.
    Bubblewrap,
}

/// What the server asks a supervisor for.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) command: Command,
    pub(crate) confiner: Confiner,
    pub(crate) purpose: Purpose,
}

/// What a supervisor tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The program runs.
    Started(Facts),
    /// It does not.
    Failed(Failure),
    /// The root ended and the tree is gone.
    Exited(Exit),
    /// The answer to [`ASK_MEMORY_KILLS`].
    MemoryKills(u32),
}

/// How the tree is kept in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) memory: LimitMethod,
    pub(crate) processes: LimitMethod,
    /// Version of Landlock in force; 0 is none.
    pub(crate) landlock_abi: u8,
}

/// Where a tree runs. Each place has a line of its own, on which supervisors that were prepared for it wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Among the server's own processes.
    Open,
    /// In namespaces of its own.
    Confined {
        /// Whether the host's network is there.
        network: bool,
    },
}

impl Place {
    /// All places, in the order in which the server hands over their lines.
    pub(crate) const ALL: [Self; 3] = [Self::Open, Self::Confined { network: false }, Self::Confined { network: true }];

    pub(crate) fn of(policy: Option<&Policy>, confiner: Confiner) -> Self {
        match (policy, confiner) {
            (Some(policy), Confiner::Builtin) => Self::Confined { network: policy.network },
            (Some(_), Confiner::Bubblewrap) | (None, _) => Self::Open,
        }
    }

    /// Its position in [`Place::ALL`].
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Open => 0,
            Self::Confined { network: false } => 1,
            Self::Confined { network: true } => 2,
        }
    }
}

/// Why a program does not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It could not be executed.
    Program { errno: i32 },
    /// Its working folder could not be entered.
    Directory { errno: i32 },
    /// Something else on the way.
    Setup { message: String },
    /// The sandbox could not be made.
    Sandbox { reason: String },
}

/// A request with its length in front.
pub(crate) fn encode_request(request: &Request) -> Vec<u8> {
    let Request { command, confiner, purpose } = request;
    let mut writer = Writer(vec![0; LENGTH_BYTES]);
    writer.flag(*purpose == Purpose::Probe);
    writer.flag(*confiner == Confiner::Bubblewrap);
    writer.bytes(command.program.as_os_str());
    writer.list(&command.arguments, |writer, argument| writer.bytes(argument));
    writer.list(&command.environment, |writer, (name, value)| {
        writer.bytes(name);
        writer.bytes(value);
    });
    writer.bytes(command.directory.as_os_str());
    writer.number(command.limits.memory_bytes);
    writer.number(command.limits.max_processes.map(u64::from));
    writer.number(command.limits.max_file_bytes);
    writer.flag(command.policy.is_some());
    if let Some(policy) = &command.policy {
        writer.list(&policy.read_only, |writer, path| writer.bytes(path.as_os_str()));
        writer.list(&policy.read_write, |writer, path| writer.bytes(path.as_os_str()));
        writer.flag(policy.network);
    }
    writer.finish()
}

/// Reads a request, without its length.
pub(crate) fn decode_request(bytes: &[u8]) -> Option<Request> {
    let mut reader = Reader(bytes);
    let purpose = if reader.flag()? { Purpose::Probe } else { Purpose::Run };
    let confiner = if reader.flag()? { Confiner::Bubblewrap } else { Confiner::Builtin };
    let command = Command {
        program: PathBuf::from(reader.bytes()?),
        arguments: reader.list(Reader::bytes)?,
        environment: reader.list(|reader| Some((reader.bytes()?, reader.bytes()?)))?,
        directory: PathBuf::from(reader.bytes()?),
        limits: ProcessLimits {
            memory_bytes: reader.number()?,
            max_processes: reader.number()?.and_then(|count| u32::try_from(count).ok()),
            max_file_bytes: reader.number()?,
        },
        policy: if reader.flag()? { Some(decode_policy(&mut reader)?) } else { None },
    };
    Some(Request { command, confiner, purpose })
}

fn decode_policy(reader: &mut Reader<'_>) -> Option<Policy> {
    Some(Policy {
        read_only: reader.list(|reader| reader.bytes().map(PathBuf::from))?,
        read_write: reader.list(|reader| reader.bytes().map(PathBuf::from))?,
        network: reader.flag()?,
    })
}

/// An event with its length in front.
pub(crate) fn encode_event(event: &Event) -> Vec<u8> {
    let mut writer = Writer(vec![0; LENGTH_BYTES]);
    match event {
        Event::Started(facts) => {
            writer.0.extend([b's', method_code(facts.memory), method_code(facts.processes), facts.landlock_abi]);
        }
        Event::Failed(Failure::Program { errno }) => writer.tagged(b'p', *errno),
        Event::Failed(Failure::Directory { errno }) => writer.tagged(b'd', *errno),
        Event::Failed(Failure::Setup { message }) => {
            writer.0.push(b'u');
            writer.bytes(OsStr::new(message));
        }
        Event::Failed(Failure::Sandbox { reason }) => {
            writer.0.push(b'x');
            writer.bytes(OsStr::new(reason));
        }
        Event::Exited(Exit::Code(code)) => writer.tagged(b'c', *code),
        Event::Exited(Exit::Signal(signal)) => writer.tagged(b'g', *signal),
        Event::Exited(Exit::MemoryLimit) => writer.0.push(b'm'),
        Event::Exited(Exit::ProcessLimit) => writer.0.push(b'n'),
        Event::MemoryKills(count) => writer.tagged(b'k', count.cast_signed()),
    }
    writer.finish()
}

/// Takes a whole event off the front of `buffer`: `None` if it has not arrived yet, `Some(None)` if it makes no sense.
#[expect(clippy::option_option, reason = "not yet, and never, are two answers")]
pub(crate) fn take_event(buffer: &mut Vec<u8>) -> Option<Option<Event>> {
    let message = message_body(buffer)?;
    let (event, end) = (decode_event(message), LENGTH_BYTES + message.len());
    buffer.drain(..end);
    Some(event)
}

/// The message at the front of `buffer`, if it has arrived whole.
pub(crate) fn message_body(buffer: &[u8]) -> Option<&[u8]> {
    buffer.get(LENGTH_BYTES..LENGTH_BYTES + message_length(buffer)?)
}

/// Length of the message at the front of `buffer`, without the length itself.
fn message_length(buffer: &[u8]) -> Option<usize> {
    let length = buffer.first_chunk::<LENGTH_BYTES>()?;
    usize::try_from(u32::from_le_bytes(*length)).ok()
}

fn decode_event(message: &[u8]) -> Option<Event> {
    let (tag, rest) = message.split_first()?;
    let mut reader = Reader(rest);
    Some(match tag {
        b's' => {
            let [memory, processes, landlock_abi] = reader.array()?;
            Event::Started(Facts { memory: method(memory)?, processes: method(processes)?, landlock_abi })
        }
        b'p' => Event::Failed(Failure::Program { errno: reader.integer()? }),
        b'd' => Event::Failed(Failure::Directory { errno: reader.integer()? }),
        b'u' => Event::Failed(Failure::Setup { message: reader.text()? }),
        b'x' => Event::Failed(Failure::Sandbox { reason: reader.text()? }),
        b'c' => Event::Exited(Exit::Code(reader.integer()?)),
        b'g' => Event::Exited(Exit::Signal(reader.integer()?)),
        b'm' => Event::Exited(Exit::MemoryLimit),
        b'n' => Event::Exited(Exit::ProcessLimit),
        b'k' => Event::MemoryKills(reader.integer()?.cast_unsigned()),
        _ => return None,
    })
}

const METHODS: [LimitMethod; 4] = [LimitMethod::None, LimitMethod::Cgroup, LimitMethod::Rlimit, LimitMethod::Sampling];

fn method_code(method: LimitMethod) -> u8 {
    METHODS.iter().position(|known| *known == method).and_then(|code| u8::try_from(code).ok()).unwrap_or_default()
}

fn method(code: u8) -> Option<LimitMethod> {
    METHODS.get(usize::from(code)).copied()
}

/// Puts a message together; starts with room for the length.
struct Writer(Vec<u8>);

impl Writer {
    fn flag(&mut self, flag: bool) {
        self.0.push(u8::from(flag));
    }

    fn length(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.0.extend(length.to_le_bytes());
    }

    fn number(&mut self, number: Option<u64>) {
        self.flag(number.is_some());
        self.0.extend(number.unwrap_or_default().to_le_bytes());
    }

    fn bytes(&mut self, bytes: &OsStr) {
        self.length(bytes.len());
        self.0.extend(bytes.as_bytes());
    }

    fn list<T>(&mut self, items: &[T], write: impl Fn(&mut Self, &T)) {
        self.length(items.len());
        for item in items {
            write(self, item);
        }
    }

    fn tagged(&mut self, tag: u8, value: i32) {
        self.0.push(tag);
        self.0.extend(value.to_le_bytes());
    }

    fn finish(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len() - LENGTH_BYTES).unwrap_or(u32::MAX);
        if let Some(place) = self.0.first_chunk_mut::<LENGTH_BYTES>() {
            *place = length.to_le_bytes();
        }
        self.0
    }
}

/// Takes a message apart; every read is `None` where the message is too short.
struct Reader<'message>(&'message [u8]);

impl Reader<'_> {
    fn array<const COUNT: usize>(&mut self) -> Option<[u8; COUNT]> {
        let (array, rest) = self.0.split_first_chunk::<COUNT>()?;
        self.0 = rest;
        Some(*array)
    }

    fn flag(&mut self) -> Option<bool> {
        self.array::<1>().map(|[flag]| flag != 0)
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.array()?)).ok()
    }

    fn integer(&mut self) -> Option<i32> {
        self.array().map(i32::from_le_bytes)
    }

    #[expect(clippy::option_option, reason = "an absent number is a value of its own")]
    fn number(&mut self) -> Option<Option<u64>> {
        let present = self.flag()?;
        let number = u64::from_le_bytes(self.array()?);
        Some(present.then_some(number))
    }

    fn bytes(&mut self) -> Option<OsString> {
        let length = self.length()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(OsString::from_vec(bytes.to_vec()))
    }

    fn text(&mut self) -> Option<String> {
        self.bytes().map(|bytes| bytes.to_string_lossy().into_owned())
    }

    fn list<T>(&mut self, read: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let count = self.length()?;
        (0..count).map(|_| read(self)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        Command {
            program: "/bin/\u{1F600}".into(),
            arguments: vec!["-c".into(), OsString::from_vec(vec![0xff, b'x']), OsString::new()],
            environment: vec![("A".into(), "1=2".into())],
            directory: "/work folder".into(),
            policy: Some(Policy { read_only: vec!["/a".into()], read_write: vec![], network: true }),
            limits: ProcessLimits { memory_bytes: Some(u64::MAX), max_processes: None, max_file_bytes: Some(0) },
        }
    }

    #[test]
    fn requests_survive_the_way() {
        for (purpose, confiner) in [(Purpose::Run, Confiner::Builtin), (Purpose::Probe, Confiner::Bubblewrap)] {
            let request = Request { command: command(), confiner, purpose };
            let bytes = encode_request(&request);
            assert_eq!(message_length(&bytes), Some(bytes.len() - LENGTH_BYTES));
            let decoded = decode_request(&bytes[LENGTH_BYTES..]).expect("it is whole");
            assert_eq!(format!("{decoded:?}"), format!("{request:?}"));
            for end in LENGTH_BYTES..bytes.len() {
                assert!(decode_request(&bytes[LENGTH_BYTES..end]).is_none(), "cut at {end}");
            }
        }
    }

    #[test]
    fn events_arrive_whole_and_in_order() {
        let events = [
            Event::Started(Facts { memory: LimitMethod::Cgroup, processes: LimitMethod::Sampling, landlock_abi: 7 }),
            Event::Failed(Failure::Program { errno: 2 }),
            Event::Failed(Failure::Directory { errno: 13 }),
            Event::Failed(Failure::Setup { message: "no room".to_owned() }),
            Event::Failed(Failure::Sandbox { reason: "no namespaces".to_owned() }),
            Event::Exited(Exit::Code(-1)),
            Event::Exited(Exit::Signal(9)),
            Event::Exited(Exit::MemoryLimit),
            Event::Exited(Exit::ProcessLimit),
            Event::MemoryKills(3),
        ];
        let mut buffer = Vec::new();
        let mut arrived = Vec::new();
        for byte in events.iter().flat_map(encode_event) {
            buffer.push(byte);
            arrived.extend(take_event(&mut buffer).map(|event| event.expect("it makes sense")));
        }
        assert_eq!(arrived, events);
        assert_eq!(take_event(&mut vec![1, 0, 0, 0, b'?']), Some(None));
    }
}
