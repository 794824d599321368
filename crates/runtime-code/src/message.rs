//! What the server and a worker process say to each other: a length of four bytes (little endian), then JSON.

use std::io::{self, Read, Write};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use skillz_json::{Map, Value};

use crate::request::Language;

/// Longest message. Values between tools pass whole, but not without end.
pub(crate) const LONGEST_MESSAGE: usize = 256 << 20;

/// From the server to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum ToWorker {
    /// Run a program.
    Run(Program),
    /// Only bring a JavaScript or TypeScript program into the form that node runs.
    Prepare(Program),
    /// The answer to a request.
    Reply(Reply),
}

/// A program.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Program {
    /// Tells the messages of one run from those of another.
    pub(crate) run: u64,
    pub(crate) language: Language,
    pub(crate) code: String,
    /// Identifiers of the program that are tools.
    pub(crate) tools: Vec<String>,
    /// What is left of its time.
    pub(crate) budget_ms: u64,
    pub(crate) memory_bytes: u64,
    pub(crate) output_bytes: u64,
}

/// The answer to a request.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Reply {
    pub(crate) run: u64,
    pub(crate) id: u32,
    /// What is left of the program's time; waiting for a person does not use it up.
    pub(crate) budget_ms: u64,
    pub(crate) result: Result<Value, ReplyError>,
}

/// Why a request failed, as the program sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReplyError {
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<Value>,
}

/// From a worker to the server. After `Done`, `Failed`, `Unsupported` or `Prepared` the run is over.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum FromWorker {
    Request {
        run: u64,
        id: u32,
        request: Request,
    },
    Printed {
        run: u64,
        text: String,
    },
    Done {
        run: u64,
        result: Value,
    },
    Failed {
        run: u64,
        failure: Failure,
    },
    /// The program needs what this interpreter lacks. Nothing of it has run.
    Unsupported {
        run: u64,
        reason: String,
    },
    /// The program as node runs it.
    Prepared {
        run: u64,
        prepared: PreparedProgram,
    },
}

/// A program changed for node.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PreparedProgram {
    pub(crate) text: String,
    /// Imports, to stand in front of the text on its first line.
    #[serde(default)]
    pub(crate) header: String,
    /// Whether it has forms that only a module may have: imports of any kind, and `import.meta`.
    #[serde(default)]
    pub(crate) is_module: bool,
    /// The line of the original for each line of the text, counted from 1; empty where they are the same.
    #[serde(default)]
    pub(crate) lines: Vec<u32>,
}

/// What a program asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Call a tool.
    Call(Call),
    /// Any other host request, as scripts make it.
    Host { method: String, params: Value },
}

/// A call of a tool, with the arguments as the program gave them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// Values without a name, to be matched with the tool's parameters in their order.
    #[serde(default)]
    pub(crate) positional: Vec<Value>,
    #[serde(default)]
    pub(crate) named: Map<String, Value>,
}

/// How a program failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// The exception in a line.
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) traceback: Option<String>,
}

/// The class of a tool's failure, in all languages.
pub(crate) const TOOL_ERROR: &str = "ToolError";

impl Failure {
    /// A failure of a program, without a place.
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), traceback: None }
    }
}

/// A message with the line where it happened, behind its first line: a tool's failure may have many.
pub(crate) fn with_line(message: &str, line: u32) -> String {
    match message.split_once('\n') {
        Some((first, rest)) => format!("{first} (line {line})\n{rest}"),
        None => format!("{message} (line {line})"),
    }
}

/// How a traceback tells of its exception. What a tool said stands in the message, and is not said again.
pub(crate) fn last_line(summary: &str) -> &str {
    if summary.strip_prefix(TOOL_ERROR).is_some_and(|rest| rest.starts_with(':')) { TOOL_ERROR } else { summary }
}

/// What sort of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FailureKind {
    /// It is no program of its language.
    Syntax,
    /// An exception that nobody caught.
    Exception,
    /// Out of time.
    Time,
    /// Out of memory.
    Memory,
    /// It printed too much.
    Output,
    /// Its result cannot be passed on.
    Result,
}

impl FromWorker {
    /// The run that the message belongs to.
    pub(crate) fn run(&self) -> u64 {
        match self {
            Self::Request { run, .. }
            | Self::Printed { run, .. }
            | Self::Done { run, .. }
            | Self::Failed { run, .. }
            | Self::Unsupported { run, .. }
            | Self::Prepared { run, .. } => *run,
        }
    }
}

/// A message with its length in front.
pub(crate) fn encode(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = bytes.len() - 4;
    if length > LONGEST_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes is too long")));
    }
    let prefix = u32::try_from(length).map_err(io::Error::other)?.to_le_bytes();
    if let Some(place) = bytes.first_chunk_mut() {
        *place = prefix;
    }
    Ok(bytes)
}

/// Checks a message's length before room is made for it.
pub(crate) fn checked_length(prefix: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_le_bytes(prefix) as usize;
    if length > LONGEST_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message of {length} bytes is too long")));
    }
    Ok(length)
}

/// Writes a message.
pub(crate) fn write(writer: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    writer.write_all(&encode(message)?)?;
    writer.flush()
}

/// Reads a message; `None` at the end of the stream.
pub(crate) fn read<T: DeserializeOwned>(reader: &mut impl Read) -> io::Result<Option<T>> {
    let mut prefix = [0; 4];
    match reader.read_exact(&mut prefix) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let mut bytes = vec![0; checked_length(prefix)?];
    reader.read_exact(&mut bytes)?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}

#[cfg(test)]
mod tests {
    use skillz_json::json;

    use super::*;

    #[test]
    fn messages_survive_the_way_and_ends_are_seen() {
        let reply = ToWorker::Reply(Reply {
            run: 7,
            id: 3,
            budget_ms: 20,
            result: Ok(json!({"big": 9_007_199_254_740_993_i64, "t": "é\u{0}"})),
        });
        let mut bytes = Vec::new();
        write(&mut bytes, &reply).expect("written");
        write(&mut bytes, &reply).expect("written");
        let mut reader = bytes.as_slice();
        for _ in 0..2 {
            let Some(ToWorker::Reply(read)) = read(&mut reader).expect("read") else { panic!("a reply") };
            assert_eq!(read.result.expect("a value")["big"], json!(9_007_199_254_740_993_i64));
        }
        assert!(read::<ToWorker>(&mut reader).expect("the end").is_none());
        assert!(read::<ToWorker>(&mut &[255_u8, 255, 255, 255][..]).is_err(), "no room is made for a length that cannot be");
    }
}
