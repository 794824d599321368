//! JavaScript and TypeScript programs, run by QuickJS in a context that has the language and nothing else.

mod outbox;
mod prepare;
mod trace;

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Function, Object, Runtime, context::EvalOptions};
use skillz_json::Value;

use self::{outbox::Outbox, prepare::Prepared};
use crate::{
    message::{Failure, FailureKind, PreparedProgram, Program, Reply, with_line},
    worker::{Outcome, link::Link},
};

/// What programs are called in stack traces.
const FILE_NAME: &str = "code.js";
/// Stack of a program, in bytes; deeper recursion is a `RangeError`.
const STACK_BYTES: usize = 4 << 20;
/// How long the program may wait for an answer before its clock is looked at again.
const LONGEST_WAIT: Duration = Duration::from_millis(50);

/// So long before its time is up a program that has ended waits for its timers no more.
const LAST_MOMENT: Duration = Duration::from_millis(150);

const KIT: &str = include_str!("kit.js");

/// Checks and runs a program.
pub(crate) fn run(program: &Program, link: &mut Link) -> Outcome {
    let prepared = match prepare::prepare(program, prepare::Target::Embedded) {
        Ok(prepared) => prepared,
        Err(failure) => return Outcome::Failed(failure),
    };
    if let Some(reason) = prepared.unsupported {
        return Outcome::Unsupported(reason);
    }
    match Engine::new(program, link) {
        Ok(mut engine) => engine.run(&prepared),
        Err(error) => Outcome::Failed(Failure::new(FailureKind::Memory, format!("The interpreter could not be set up: {error}"))),
    }
}

/// Checks a program and wraps it as for a run, for the machine's own interpreter.
pub(crate) fn prepare_only(program: &Program) -> Outcome {
    match prepare::prepare(program, prepare::Target::Process) {
        Ok(prepared) => {
            let (lines, is_module) = (prepared.lines(), prepared.is_module);
            Outcome::Prepared(PreparedProgram { lines, is_module, text: prepared.text, header: prepared.header })
        }
        Err(failure) => Outcome::Failed(failure),
    }
}

struct Engine<'a> {
    program: &'a Program,
    link: &'a mut Link,
    runtime: Runtime,
    context: Context,
    outbox: Rc<Outbox>,
    /// When the program's time is up; moves when an answer says how long a person took.
    deadline: Rc<Cell<Instant>>,
    interrupted: Rc<Cell<bool>>,
}

impl<'a> Engine<'a> {
    fn new(program: &'a Program, link: &'a mut Link) -> rquickjs::Result<Self> {
        let runtime = Runtime::new()?;
        runtime.set_memory_limit(usize::try_from(program.memory_bytes).unwrap_or(usize::MAX));
        runtime.set_max_stack_size(STACK_BYTES);
        let deadline = Rc::new(Cell::new(link.deadline()));
        let interrupted = Rc::new(Cell::new(false));
        let (until, flag) = (Rc::clone(&deadline), Rc::clone(&interrupted));
        runtime.set_interrupt_handler(Some(Box::new(move || {
            let is_up = Instant::now() >= until.get();
            flag.set(flag.get() || is_up);
            is_up
        })));
        let context = Context::full(&runtime)?;
        let outbox = Rc::new(Outbox::new(program.output_bytes));
        Ok(Self { program, link, runtime, context, outbox, deadline, interrupted })
    }

    fn run(&mut self, prepared: &Prepared) -> Outcome {
        let context = self.context.clone();
        let outcome = context.with(|ctx| match self.drive(&ctx, prepared) {
            Ok(outcome) => outcome,
            Err(error) => {
                let caught = CaughtError::from_error(&ctx, error);
                Outcome::Failed(self.failure(&describe(&caught), prepared))
            }
        });
        self.send();
        // Without this a program that the interrupt ended keeps its frames alive.
        self.runtime.set_interrupt_handler(None);
        outcome
    }

    fn drive(&mut self, ctx: &Ctx<'_>, prepared: &Prepared) -> rquickjs::Result<Outcome> {
        let kit: Function<'_> = ctx.eval(KIT)?;
        let (requests, prints) = (Rc::clone(&self.outbox), Rc::clone(&self.outbox));
        let request = Function::new(ctx.clone(), move |id: u32, message: String| requests.request(id, &message))?;
        let print = Function::new(ctx.clone(), move |text: String| prints.print(&text))?;
        let api: Object<'_> = kit.call((self.program.tools.clone(), request, print))?;
        let (start, state): (Function<'_>, Function<'_>) = (api.get("start")?, api.get("state")?);
        let (settle, tick): (Function<'_>, Function<'_>) = (api.get("settle")?, api.get("tick")?);
        let next_timer: Function<'_> = api.get("nextTimer")?;

        let mut options = EvalOptions::default();
        options.filename = Some(FILE_NAME.to_owned());
        options.backtrace_barrier = true;
        let promise: rquickjs::Value<'_> = match ctx.eval_with_options(prepared.text.as_str(), options).catch(ctx) {
            Ok(promise) => promise,
            Err(caught) => return Ok(Outcome::Failed(self.failure(&describe(&caught), prepared))),
        };
        start.call::<_, ()>((promise,))?;
        loop {
            while !self.interrupted.get() && ctx.execute_pending_job() {
                self.send_if_large();
            }
            self.send();
            if self.interrupted.get() || self.outbox.has_printed_too_much() {
                return Ok(Outcome::Failed(self.failure(&Description::default(), prepared)));
            }
            let timer: f64 = next_timer.call(())?;
            let state = state.call::<_, Vec<String>>(())?;
            // Timers that are set still run, as in Node, but no longer than the program may.
            let is_waiting =
                timer >= 0.0 && state.first().is_some_and(|end| end == "done") && self.link.time_left() > LAST_MOMENT;
            if !is_waiting && let Some(ended) = self.ended(&state, prepared) {
                return Ok(ended);
            }
            if timer < 0.0 && self.outbox.open() == 0 {
                let message = "The program waits for something that never comes: no call and no timer is left";
                return Ok(Outcome::Failed(Failure::new(FailureKind::Exception, message)));
            }
            let wait = if timer < 0.0 { LONGEST_WAIT } else { Duration::from_secs_f64(timer / 1e3).min(LONGEST_WAIT) };
            match self.link.wait(wait) {
                Some(reply) => self.settle(&settle, reply)?,
                None => tick.call::<_, ()>(())?,
            }
            self.deadline.set(self.link.deadline());
            if self.link.time_left().is_zero() {
                self.interrupted.set(true);
            }
        }
    }

    fn settle(&self, settle: &Function<'_>, reply: Reply) -> rquickjs::Result<()> {
        self.outbox.answered();
        match reply.result {
            Ok(value) => settle.call((reply.id, true, value.to_string(), Option::<String>::None)),
            Err(error) => settle.call((reply.id, false, error.message, error.data.map(|data| data.to_string()))),
        }
    }

    /// Reads the kit's state: what the program came to, if it has ended.
    fn ended(&self, state: &[String], prepared: &Prepared) -> Option<Outcome> {
        match state {
            [done, json] if done == "done" => Some(match serde_json::from_str::<Value>(json) {
                Ok(value) => Outcome::Done(value),
                Err(error) => {
                    let message = format!("The result is no JSON value: {error}");
                    Outcome::Failed(Failure::new(FailureKind::Result, message))
                }
            }),
            [failed, message, stack] if failed == "failed" => {
                let description = Description { message: message.clone(), stack: stack.clone() };
                Some(Outcome::Failed(self.failure(&description, prepared)))
            }
            _ => None,
        }
    }

    fn failure(&self, description: &Description, prepared: &Prepared) -> Failure {
        let traceback = trace::traceback(description, prepared, &self.program.code);
        let mut message = description.message.clone();
        let kind = if self.outbox.has_printed_too_much() {
            message = format!("It printed more than {} bytes", self.program.output_bytes);
            FailureKind::Output
        } else if self.interrupted.get() || message.ends_with("interrupted") {
            FailureKind::Time
        } else if message.contains("out of memory") {
            FailureKind::Memory
        } else if message.starts_with("SyntaxError") {
            FailureKind::Syntax
        } else {
            FailureKind::Exception
        };
        if let Some(line) = traceback.as_ref().and_then(|traceback| traceback.line) {
            message = with_line(&message, line);
        }
        // The program has been read by another parser before.
        Failure { kind, message, traceback: traceback.map(|traceback| traceback.text) }
    }

    fn send(&mut self) {
        for action in self.outbox.take() {
            match action {
                outbox::Action::Print(text) => drop(self.link.print(&text)),
                outbox::Action::Request(id, request) => self.link.request(id, request),
            }
        }
        self.link.flush_if_due();
    }

    fn send_if_large(&mut self) {
        if self.outbox.is_large() {
            self.send();
        }
    }
}

/// An exception as JavaScript tells of it.
#[derive(Debug, Default)]
pub(crate) struct Description {
    pub(crate) message: String,
    pub(crate) stack: String,
}

fn describe(caught: &CaughtError<'_>) -> Description {
    match caught {
        CaughtError::Exception(exception) => {
            let object = exception.as_object();
            let name: String = object.get("name").unwrap_or_else(|_| "Error".to_owned());
            let message = exception.message().unwrap_or_default();
            Description { message: format!("{name}: {message}"), stack: exception.stack().unwrap_or_default() }
        }
        other => Description { message: other.to_string(), stack: String::new() },
    }
}
