//! Places for calls: so many at once, the rest in order.
//!
//! A client's call takes a place; a script takes a script place too, both at the same moment, so that waiting
//! scripts do not stand in the way of quick calls. An inner script whose callers hold no script place takes
//! just that. Whoever holds a script place waits for no other, so nothing can wait in a circle.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

use crate::Concurrency;

/// Hands out places. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Queue(Arc<Mutex<State>>);

/// What a call needs to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// A place among the calls.
    Call,
    /// A place among the calls and one among the scripts.
    ScriptCall,
    /// A place among the scripts, for an inner call.
    InnerScript,
}

/// A place, given back when it is dropped.
pub(crate) struct Place {
    queue: Queue,
    need: Need,
}

struct State {
    free_calls: usize,
    free_scripts: usize,
    next_ticket: u64,
    /// Waiters by [`Need`], each line in order.
    lines: [VecDeque<Waiter>; 3],
}

struct Waiter {
    ticket: u64,
    ready: oneshot::Sender<Place>,
}

const NEEDS: [Need; 3] = [Need::Call, Need::ScriptCall, Need::InnerScript];

impl Queue {
    /// A queue with that many places; at least one of each.
    pub(crate) fn new(concurrency: Concurrency) -> Self {
        Self(Arc::new(Mutex::new(State {
            free_calls: concurrency.calls.max(1),
            free_scripts: concurrency.scripts.max(1),
            next_ticket: 0,
            lines: Default::default(),
        })))
    }

    /// Waits for a place. Dropping the future leaves the line.
    pub(crate) async fn place(&self, need: Need) -> Place {
        loop {
            let waiting = {
                let mut state = self.lock();
                // Whoever waits in a line waits because it could not be served, so nobody is overtaken here.
                if state.take(need) {
                    return Place { queue: self.clone(), need };
                }
                let (ready, waiting) = oneshot::channel();
                let ticket = state.next_ticket;
                state.next_ticket += 1;
                state.line(need).push_back(Waiter { ticket, ready });
                waiting
            };
            if let Ok(place) = waiting.await {
                return place;
            }
        }
    }

    /// Gives everything to waiters that can be given. Places are sent after the lock is released: one that
    /// nobody receives any more comes straight back here.
    fn serve(&self) {
        let mut served = Vec::new();
        {
            let mut state = self.lock();
            while let Some((need, waiter)) = state.next() {
                served.push((waiter, Place { queue: self.clone(), need }));
            }
        }
        for (waiter, place) in served {
            drop(waiter.ready.send(place));
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.queue.lock().give_back(self.need);
        self.queue.serve();
    }
}

impl State {
    /// Takes what `need` wants, if it is all there.
    fn take(&mut self, need: Need) -> bool {
        let (calls, scripts) = need.amounts();
        if self.free_calls < calls || self.free_scripts < scripts {
            return false;
        }
        self.free_calls -= calls;
        self.free_scripts -= scripts;
        true
    }

    fn give_back(&mut self, need: Need) {
        let (calls, scripts) = need.amounts();
        self.free_calls += calls;
        self.free_scripts += scripts;
    }

    fn line(&mut self, need: Need) -> &mut VecDeque<Waiter> {
        let [calls, script_calls, inner_scripts] = &mut self.lines;
        match need {
            Need::Call => calls,
            Need::ScriptCall => script_calls,
            Need::InnerScript => inner_scripts,
        }
    }

    /// The waiter that came first of those that can be served, with its places taken.
    fn next(&mut self) -> Option<(Need, Waiter)> {
        let mut first: Option<(u64, Need)> = None;
        for need in NEEDS {
            let line = self.line(need);
            while line.front().is_some_and(|waiter| waiter.ready.is_closed()) {
                line.pop_front();
            }
            let Some(ticket) = line.front().map(|waiter| waiter.ticket) else { continue };
            let (calls, scripts) = need.amounts();
            let possible = self.free_calls >= calls && self.free_scripts >= scripts;
            if possible && first.is_none_or(|(earlier, _)| ticket < earlier) {
                first = Some((ticket, need));
            }
        }
        let (_, need) = first?;
        let waiter = self.line(need).pop_front()?;
        self.take(need).then_some((need, waiter))
    }
}

impl Need {
    /// Places among calls and scripts.
    fn amounts(self) -> (usize, usize) {
        match self {
            Self::Call => (1, 0),
            Self::ScriptCall => (1, 1),
            Self::InnerScript => (0, 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{pin::Pin, task::Context};

    use futures::{FutureExt, task::noop_waker};

    use super::*;

    fn queue(calls: usize, scripts: usize) -> Queue {
        Queue::new(Concurrency { calls, scripts })
    }

    type Waiting = Pin<Box<dyn Future<Output = Place> + Send>>;

    fn wait(queue: &Queue, need: Need) -> Waiting {
        let queue = queue.clone();
        let mut waiting: Waiting = Box::pin(async move { queue.place(need).await });
        assert!(poll(&mut waiting).is_none(), "there should be nothing to give");
        waiting
    }

    fn poll(waiting: &mut Waiting) -> Option<Place> {
        match waiting.as_mut().poll(&mut Context::from_waker(&noop_waker())) {
            std::task::Poll::Ready(place) => Some(place),
            std::task::Poll::Pending => None,
        }
    }

    fn take(queue: &Queue, need: Need) -> Place {
        queue.place(need).now_or_never().expect("a place is free")
    }

    #[test]
    fn waiters_are_served_in_order() {
        let queue = queue(1, 1);
        let held = take(&queue, Need::Call);
        let mut first = wait(&queue, Need::Call);
        let mut second = wait(&queue, Need::ScriptCall);
        let mut third = wait(&queue, Need::Call);
        drop(held);
        let place = poll(&mut first).expect("the first is served");
        assert!(poll(&mut second).is_none() && poll(&mut third).is_none());
        drop(place);
        let place = poll(&mut second).expect("then the second, though another kind");
        assert!(poll(&mut third).is_none());
        drop(place);
        assert!(poll(&mut third).is_some());
    }

    #[test]
    fn waiting_scripts_do_not_stand_in_the_way_of_other_calls() {
        let queue = queue(2, 1);
        let script = take(&queue, Need::ScriptCall);
        let mut waiting = wait(&queue, Need::ScriptCall);
        let quick = take(&queue, Need::Call);
        drop(script);
        assert!(poll(&mut waiting).is_some());
        drop(quick);
    }

    #[test]
    fn whoever_gives_up_leaves_the_line_at_any_moment() {
        let queue = queue(1, 1);
        let held = take(&queue, Need::Call);
        let gone = wait(&queue, Need::Call);
        let mut patient = wait(&queue, Need::Call);
        drop(gone);
        drop(held);
        let place = poll(&mut patient).expect("the one before it left");
        // Served, and dropped before it noticed.
        let unaware = wait(&queue, Need::Call);
        drop(place);
        drop(unaware);
        drop(take(&queue, Need::Call));
    }

    #[test]
    fn inner_scripts_need_no_place_among_the_calls() {
        let queue = queue(1, 1);
        let _pipeline = take(&queue, Need::Call);
        let inner = take(&queue, Need::InnerScript);
        let mut next = wait(&queue, Need::InnerScript);
        drop(inner);
        assert!(poll(&mut next).is_some());
    }
}
