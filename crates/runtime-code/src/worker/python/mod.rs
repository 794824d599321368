//! Python programs, run by Monty, an interpreter that knows no files, no network and no processes.

mod analysis;
mod convert;
mod flow;
mod operating_system;
mod prepare;
mod traceback;

use std::{borrow::Cow, collections::HashSet, time::Duration};

use monty::{MontyRun, RunProgress};
use monty_types::{
    CompileOptions, ExcType, ExtFunctionResult, MontyException, MontyObject, NameLookupResult, PrintWriter, PrintWriterCallback,
    ResourceLimits, ResourceTracker,
};
use skillz_json::{Map, Value};

use self::{
    convert::{from_value, into_value},
    prepare::Prepared,
};
use crate::{
    message::{Call, Failure, FailureKind, Program, Reply, Request},
    worker::{Outcome, link::Link},
};

/// What programs are called in tracebacks.
const FILE_NAME: &str = "code.py";
/// Deepest recursion, as in the reference interpreter.
const DEEPEST_RECURSION: usize = 1_000;

/// Names that the prepared program uses; see `prelude.py`.
const RETURN: &str = "_skillz_return";
const REQUEST: &str = "_skillz_request";
const SLEEP: &str = "_skillz_sleep";
/// Ends the name of a tool whose call is awaited, and so gives a future instead of a value.
const LATER: &str = "_skillz_later";

/// Checks and runs a program.
pub(crate) fn run(program: &Program, link: &mut Link) -> Outcome {
    let prepared = match prepare::prepare(program) {
        Ok(prepared) => prepared,
        Err(failure) => return Outcome::Failed(failure),
    };
    let compiled = match MontyRun::new(prepared.text.clone(), FILE_NAME, Vec::new(), CompileOptions::default()) {
        Ok(compiled) => compiled,
        Err(error) if error.exc_type() == ExcType::NotImplementedError => {
            let message = error.message().unwrap_or_default();
            return Outcome::Unsupported(
                message.replace("The monty syntax parser does not yet support ", "the embedded interpreter has no "),
            );
        }
        Err(error) => {
            return Outcome::Failed(traceback::failure(&error, FailureKind::Syntax, &prepared, &program.code, false));
        }
    };
    let limits = ResourceLimits::default()
        .max_duration(link.time_left())
        .max_memory(usize::try_from(program.memory_bytes).unwrap_or(usize::MAX))
        .max_recursion_depth(DEEPEST_RECURSION);
    let mut interpreter =
        Interpreter { link, program, prepared: &prepared, returned: None, awaited: HashSet::new(), refusals: HashSet::new() };
    let started =
        compiled.start(Vec::new(), ResourceTracker::new(limits), PrintWriter::Callback(&mut Printer(&mut *interpreter.link)));
    interpreter.drive(started)
}

struct Interpreter<'a> {
    link: &'a mut Link,
    program: &'a Program,
    prepared: &'a Prepared,
    /// What a `return` at top level gave.
    returned: Option<Value>,
    /// Calls of tools whose failure must come as a value: an exception that is given to a future passes by the `try`
    /// around its `await` where several coroutines run. The prelude raises it in the right place.
    awaited: HashSet<u32>,
    /// What failed tools said: an exception with this message is a tool's failure.
    refusals: HashSet<String>,
}

impl Interpreter<'_> {
    /// Serves the program's requests until it ends.
    fn drive(&mut self, started: Result<RunProgress, MontyException>) -> Outcome {
        let mut progress = started;
        loop {
            progress = match progress {
                Ok(RunProgress::Complete(value)) => return self.complete(&value),
                Ok(RunProgress::FunctionCall(call)) => self.function(call),
                Ok(RunProgress::NameLookup(lookup)) => {
                    let answer = self.look_up(&lookup.name);
                    lookup.resume(answer, PrintWriter::Callback(&mut Printer(self.link)))
                }
                Ok(RunProgress::OsCall(call)) => {
                    call.resume_with(PrintWriter::Callback(&mut Printer(self.link)), operating_system::answer)
                }
                Ok(RunProgress::ResolveFutures(state)) => {
                    let replies = self.link.wait_for_any(state.pending_call_ids());
                    let results = replies.into_iter().map(|reply| (reply.id, self.result(reply))).collect();
                    state.resume(results, PrintWriter::Callback(&mut Printer(self.link)))
                }
                Err(error) => return self.fail(&error),
            };
        }
    }

    fn complete(&self, value: &MontyObject) -> Outcome {
        if self.link.has_printed_too_much() {
            return Outcome::Failed(self.printed_too_much(None));
        }
        match into_value(value) {
            Ok(value) => Outcome::Done(value),
            Err(message) => Outcome::Failed(Failure::new(FailureKind::Result, message)),
        }
    }

    fn fail(&mut self, error: &MontyException) -> Outcome {
        if let Some(value) = self.returned.take() {
            return Outcome::Done(value);
        }
        let message = error.message().unwrap_or_default();
        let kind = if self.link.has_printed_too_much() {
            FailureKind::Output
        } else if message.starts_with("time limit exceeded")
            || (error.exc_type() == ExcType::TimeoutError && self.link.time_left().is_zero())
        {
            FailureKind::Time
        } else if error.exc_type() == ExcType::MemoryError {
            FailureKind::Memory
        } else if error.exc_type().is_subclass_of(ExcType::SyntaxError) {
            FailureKind::Syntax
        } else {
            FailureKind::Exception
        };
        let is_refusal = error.exc_type() == ExcType::RuntimeError && self.refusals.contains(message);
        let failure = traceback::failure(error, kind, self.prepared, &self.program.code, is_refusal);
        Outcome::Failed(if kind == FailureKind::Output { self.printed_too_much(failure.traceback) } else { failure })
    }

    fn printed_too_much(&self, traceback: Option<String>) -> Failure {
        let message = format!("It printed more than {} bytes", self.program.output_bytes);
        Failure { traceback, ..Failure::new(FailureKind::Output, message) }
    }

    /// Names that the program does not define itself.
    fn look_up(&self, name: &str) -> NameLookupResult {
        match name {
            "__name__" => NameLookupResult::Value(MontyObject::String("__main__".to_owned())),
            _ if self.is_own(name) => NameLookupResult::Value(MontyObject::Function { name: name.to_owned(), docstring: None }),
            _ => NameLookupResult::Undefined,
        }
    }

    /// Whether a name is a function of ours.
    fn is_own(&self, name: &str) -> bool {
        let tool = name.strip_suffix(LATER).unwrap_or(name);
        matches!(name, RETURN | REQUEST | SLEEP) || tool == "call" || self.program.tools.iter().any(|known| known == tool)
    }

    fn function(&mut self, mut call: monty::FunctionCall) -> Result<RunProgress, MontyException> {
        if !self.is_own(&call.function_name) {
            let name = call.function_name.clone();
            return call.resume(ExtFunctionResult::NotFound(name), PrintWriter::Callback(&mut Printer(self.link)));
        }
        let arguments = std::mem::take(&mut call.args);
        let named = std::mem::take(&mut call.kwargs);
        let name = call.function_name.clone();
        let request = match self.request(&name, &arguments, &named) {
            Ok(Some(request)) => request,
            Ok(None) => {
                let end = MontyException::new(ExcType::SystemExit, None);
                return call.abort(end, PrintWriter::Callback(&mut Printer(self.link)));
            }
            Err(error) => return call.resume(ExtFunctionResult::Error(error), PrintWriter::Callback(&mut Printer(self.link))),
        };
        self.link.request(call.call_id, request);
        if name.ends_with(LATER) {
            self.awaited.insert(call.call_id);
        }
        if name.ends_with(LATER) || name == SLEEP {
            return call.resume_pending(PrintWriter::Callback(&mut Printer(self.link)));
        }
        let reply = self.link.wait_for(call.call_id);
        call.tracker_mut().set_max_duration(self.link.time_left().max(Duration::from_millis(1)));
        call.resume(self.result(reply), PrintWriter::Callback(&mut Printer(self.link)))
    }

    /// An answer as the program gets it; see `prelude_async.py` for those that it awaits.
    fn result(&mut self, reply: Reply) -> ExtFunctionResult {
        let is_awaited = self.awaited.remove(&reply.id);
        let result = reply.result.map(from_value).map_err(|error| error.message);
        if let Err(message) = &result {
            self.refusals.insert(message.clone());
        }
        match result {
            Ok(value) if is_awaited => ExtFunctionResult::Return(MontyObject::Tuple(vec![MontyObject::Bool(true), value])),
            Err(message) if is_awaited => {
                let message = MontyObject::String(message);
                ExtFunctionResult::Return(MontyObject::Tuple(vec![MontyObject::Bool(false), message]))
            }
            Ok(value) => ExtFunctionResult::Return(value),
            Err(message) => ExtFunctionResult::Error(MontyException::new(ExcType::RuntimeError, Some(message))),
        }
    }

    /// What a call of one of our functions asks for; `None` where it is the program's `return`.
    fn request(
        &mut self,
        name: &str,
        arguments: &[MontyObject],
        named: &[(MontyObject, MontyObject)],
    ) -> Result<Option<Request>, MontyException> {
        let wrong = |message: String| MontyException::new(ExcType::TypeError, Some(message));
        let mut positional = arguments.iter().map(into_value).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let named = named.iter().map(|(key, value)| Ok((key.to_string(), into_value(value)?)));
        let mut named = named.collect::<Result<Map<String, Value>, String>>().map_err(wrong)?;
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        match name {
            RETURN => {
                self.returned = Some(positional.pop().unwrap_or_default());
                return Ok(None);
            }
            REQUEST => {
                let method = text(positional.first()).unwrap_or_default();
                let params = positional.pop().filter(Value::is_object).unwrap_or_default();
                return Ok(Some(Request::Host { method, params }));
            }
            SLEEP => return Ok(Some(Request::Host { method: "sleep".to_owned(), params: positional.pop().unwrap_or_default() })),
            _ => {}
        }
        let name = name.strip_suffix(LATER).unwrap_or(name);
        if name != "call" {
            return Ok(Some(Request::Call(Call { name: name.to_owned(), positional, named })));
        }
        let usage = "call() takes a tool's name and its arguments: call(\"name\", {\"argument\": 1})";
        let tool = text(positional.first()).ok_or_else(|| wrong(usage.to_owned()))?;
        match (positional.len(), positional.pop()) {
            (1, _) | (2, Some(Value::Null)) => {}
            (2, Some(Value::Object(members))) => named = members.into_iter().chain(named).collect(),
            _ => return Err(wrong(usage.to_owned())),
        }
        Ok(Some(Request::Call(Call { name: tool, positional: Vec::new(), named })))
    }
}

/// Takes what the program prints.
struct Printer<'a>(&'a mut Link);

impl Printer<'_> {
    fn print(&mut self, text: &str) -> Result<(), MontyException> {
        self.0.print(text).map_err(|_| MontyException::new(ExcType::MemoryError, Some("printed too much".to_owned())))
    }
}

impl PrintWriterCallback for Printer<'_> {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.print(&output)
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.print(end.encode_utf8(&mut [0; 4]))
    }

    fn poll_flush(&mut self) -> Result<(), MontyException> {
        self.0.flush_if_due();
        Ok(())
    }
}
