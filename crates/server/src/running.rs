//! A call that is going on: its work in a task of its own, and its mailbox.
//!
//! Dropping it stops the work and everything that the work started.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::{Arc, OnceLock},
    time::Duration,
};

use futures::{StreamExt, stream::FuturesUnordered};
use rmcp::{
    ErrorData,
    model::{CallToolResult, InputRequests, InputResponses},
};
use skillz_tool::ClientCapabilities;
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
    answers: InputResponses,
    /// Names given to questions so far.
    named: usize,
}

/// How far a call came in the stateless protocol.
pub(crate) enum Turn {
    /// To its end.
    Finished(Ending),
    /// To questions that only the client can answer.
    NeedsInput(InputRequests),
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
        self.answers.extend(answers);
    }

    /// Runs the call until it ends or can only go on with answers of the client.
    pub(crate) async fn advance(&mut self, outlet: &mut Outlet) -> Turn {
        self.match_answers();
        let mut gathered = self.first_question_gathered();
        loop {
            let quiet = async {
                match gathered {
                    Some(moment) => tokio::time::sleep_until(moment).await,
                    None => std::future::pending().await,
                }
            };
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
                () = quiet => match self.requests() {
                    Ok(requests) if requests.is_empty() => gathered = None,
                    Ok(requests) => return Turn::NeedsInput(requests),
                    Err(error) => return Turn::Finished(Err(error)),
                },
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
            let (Some(answer), Some(ask)) = (self.answers.remove(&name), self.asked.get(&name)) else { continue };
            if ask.question.accepts(&answer)
                && let Some(ask) = self.asked.remove(&name)
            {
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

fn ending(ended: Result<Ending, tokio::task::JoinError>) -> Ending {
    ended.unwrap_or_else(|error| Err(ErrorData::internal_error(format!("The call broke off inside the server: {error}"), None)))
}
