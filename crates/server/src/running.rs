//! A call that is going on: its work in a task of its own, and its mailbox.
//!
//! Dropping it stops the work and everything that the work started.

use std::{
    collections::{BTreeMap, HashSet},
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use rmcp::{
    ErrorData,
    model::{CallToolResult, InputRequests, InputResponses},
    task_manager::{TaskContext, TaskExit},
};
use skillz_json::{Value, wire};
use skillz_tool::{ClientCapabilities, ErrorKind, Progress, ToolError};
use tokio::{sync::mpsc, time::Instant};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    outlet::Outlet,
    port::{Ask, CallPort, ClientProfile, Event},
    question::required_capabilities,
};

/// How long further questions are waited for after the first, so that those asked at once go in one round.
const GATHER: Duration = Duration::from_millis(30);

/// How a call ends.
pub(crate) type Ending = Result<CallToolResult, ErrorData>;

/// A call that is going on.
pub(crate) struct Running {
    events: mpsc::Receiver<Event>,
    work: AbortOnDropHandle<Ending>,
    missing: Arc<OnceLock<ClientCapabilities>>,
    /// Questions that wait for the client, by name.
    asked: BTreeMap<String, Ask>,
    /// Answers that nobody has asked for yet.
    answers: BTreeMap<String, Value>,
    /// Names given to questions so far.
    named: usize,
}

/// How far a call came in the stateless protocol.
pub(crate) enum Turn {
    /// To its end.
    Finished(Ending),
    /// To questions that only the client can answer.
    NeedsInput(InputRequests),
    /// Nowhere yet, and the client need not wait for it.
    TakesLong,
}

impl Running {
    /// Starts a call; `work` gets the port to its client.
    pub(crate) fn start<F>(profile: ClientProfile, work: impl FnOnce(Arc<CallPort>) -> F) -> Self
    where
        F: Future<Output = Ending> + Send + 'static,
    {
        let (port, events, missing) = CallPort::open(profile);
        let work = AbortOnDropHandle::new(tokio::spawn(work(Arc::new(port))));
        Self { events, work, missing, asked: BTreeMap::new(), answers: BTreeMap::new(), named: 0 }
    }

    /// Runs the call to its end, asking the client whatever comes up.
    pub(crate) async fn finish(mut self, mut outlet: Outlet) -> Ending {
        let mut asking = FuturesUnordered::new();
        loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => {
                    if let Some(ask) = outlet.tell(event).await {
                        asking.push(outlet.ask(ask));
                    }
                }
                Some(()) = asking.next() => {}
                ended = &mut self.work => {
                    self.tell_rest(&mut outlet).await;
                    return ending(ended);
                }
            }
        }
    }

    /// Takes the client's answers to questions of this call, or of what it will ask.
    pub(crate) fn answer(&mut self, answers: InputResponses) {
        self.answers.extend(answers.into_iter().map(|(name, answer)| (name, wire::leave(answer))));
    }

    /// Runs the call until it ends, can only go on with answers of the client, or, where a `patience` is given, has
    /// taken that long.
    pub(crate) async fn advance(&mut self, outlet: &mut Outlet, patience: Option<Duration>) -> Turn {
        // Whether a call becomes a task must not depend on who is quicker.
        if patience == Some(Duration::ZERO) {
            return Turn::TakesLong;
        }
        let impatient = patience.map(|patience| Instant::now() + patience);
        self.match_answers();
        let mut gathered = self.first_question_gathered();
        loop {
            let quiet = until(gathered);
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => {
                    if let Some(ask) = outlet.tell(event).await {
                        self.ask(ask);
                    }
                    self.asked.retain(|_, ask| !ask.reply.is_closed());
                    gathered = gathered.or_else(|| self.first_question_gathered()).filter(|_| !self.asked.is_empty());
                }
                ended = &mut self.work => {
                    self.tell_rest(outlet).await;
                    return Turn::Finished(self.judge(ending(ended)));
                }
                () = until(impatient) => return Turn::TakesLong,
                () = quiet => match self.requests() {
                    Ok(requests) if requests.is_empty() => gathered = None,
                    Ok(requests) => return Turn::NeedsInput(requests),
                    Err(error) => return Turn::Finished(Err(error)),
                },
            }
        }
    }

    /// Runs the call to its end as a task that the client looks after by polling: reports become its status,
    /// questions its input requests.
    pub(crate) async fn finish_as_task(mut self, task: TaskContext) -> Result<CallToolResult, TaskExit> {
        let mut asking = FuturesUnordered::new();
        let mut named = HashSet::new();
        for (name, ask) in std::mem::take(&mut self.asked) {
            named.insert(name.clone());
            asking.push(ask_in_task(&task, name, ask));
        }
        loop {
            tokio::select! {
                biased;
                () = task.cancelled() => return Err(TaskExit::Cancelled),
                Some(event) = self.events.recv() => match event {
                    Event::Progress(progress) => set_status(&task, progress),
                    Event::Log(_) => {}
                    Event::Ask(ask) => {
                        self.named += 1;
                        let name = ask.question.name().map_or_else(|| format!("question_{}", self.named), str::to_owned);
                        let name = if named.insert(name.clone()) { name } else { format!("{name}_{}", self.named) };
                        asking.push(ask_in_task(&task, name, ask));
                    }
                },
                Some(()) = asking.next() => {}
                ended = &mut self.work => return self.judge(ending(ended)).map_err(TaskExit::Error),
            }
        }
    }

    fn first_question_gathered(&self) -> Option<Instant> {
        (!self.asked.is_empty()).then(|| Instant::now() + GATHER)
    }

    /// Names a question and keeps it, unless its answer is there already.
    fn ask(&mut self, ask: Ask) {
        self.named += 1;
        let name = ask.question.name().map_or_else(|| format!("question_{}", self.named), str::to_owned);
        let name = if self.asked.contains_key(&name) { format!("{name}_{}", self.named) } else { name };
        self.asked.insert(name, ask);
        self.match_answers();
    }

    /// Passes on the answers that fit a question. One that does not fit is dropped, and the question asked again.
    fn match_answers(&mut self) {
        let names: Vec<String> = self.asked.keys().filter(|name| self.answers.contains_key(*name)).cloned().collect();
        for name in names {
            let answer =
                self.answers.remove(&name).filter(|answer| self.asked.get(&name).is_some_and(|ask| ask.question.accepts(answer)));
            let Some(answer) = answer else { continue };
            if let Some(ask) = self.asked.remove(&name) {
                let _ = ask.reply.send(Ok(answer));
            }
        }
    }

    fn requests(&self) -> Result<InputRequests, ErrorData> {
        let waiting = self.asked.iter().filter(|(_, ask)| !ask.reply.is_closed());
        let request = |(name, ask): (&String, &Ask)| ask.question.input_request().map(|request| (name.clone(), request));
        waiting.map(request).collect::<Result<_, _>>().map_err(|error| ErrorData::internal_error(error.text(), None))
    }

    /// In the stateless protocol a call that failed for want of a capability is an error of its own.
    fn judge(&self, ending: Ending) -> Ending {
        match (&ending, self.missing.get()) {
            (Ok(result), Some(needed)) if result.is_error == Some(true) => {
                Err(ErrorData::missing_required_client_capability(required_capabilities(*needed)))
            }
            _ => ending,
        }
    }

    async fn tell_rest(&mut self, outlet: &mut Outlet) {
        while let Ok(event) = self.events.try_recv() {
            outlet.tell(event).await;
        }
    }
}

/// Asks under a name that was not used before, again under others until the answer fits.
fn ask_in_task(task: &TaskContext, name: String, mut ask: Ask) -> impl Future<Output = ()> + Send + use<> {
    let task = task.clone();
    async move {
        let Ok(request) = ask.question.input_request() else { return };
        let mut attempt = 1;
        let answer = loop {
            let key = if attempt == 1 { name.clone() } else { format!("{name}_again_{attempt}") };
            let answer = tokio::select! {
                answer = task.request_input(key, request.clone()) => answer,
                () = ask.reply.closed() => return,
            };
            match answer.map(wire::leave) {
                Ok(answer) if !ask.question.accepts(&answer) => attempt += 1,
                Ok(answer) => break Ok(answer),
                Err(_) => {
                    break Err(ToolError::new(ErrorKind::Cancelled, "The question was not answered: the task was cancelled"));
                }
            }
        };
        let _ = ask.reply.send(answer);
    }
}

/// Shows progress to whoever polls.
fn set_status(task: &TaskContext, progress: Progress) {
    let amount = match progress.total {
        Some(total) => format!("{} of {total}", progress.current),
        None => progress.current.to_string(),
    };
    task.set_status_message(match progress.message {
        Some(message) => format!("{amount}: {message}"),
        None => amount,
    });
}

/// Waits for a moment, or for ever.
async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

fn ending(ended: Result<Ending, tokio::task::JoinError>) -> Ending {
    ended.unwrap_or_else(|error| Err(ErrorData::internal_error(format!("The call broke off inside the server: {error}"), None)))
}
