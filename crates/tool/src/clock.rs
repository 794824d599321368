//! The clock of a call, which stands still while the call waits for something that is not its fault.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

/// Measures how long a call has really run. Clones share one clock.
#[derive(Debug, Clone)]
pub struct CallClock {
    state: Arc<Mutex<State>>,
    limit: Duration,
}

#[derive(Debug)]
struct State {
    /// Time that had run before the current stretch.
    elapsed: Duration,
    /// Start of the current stretch; absent while paused.
    running_since: Option<Instant>,
    /// Guards alive.
    pauses: usize,
}

/// Stops the clock for as long as it lives.
#[derive(Debug)]
pub struct PauseGuard(Arc<Mutex<State>>);

impl CallClock {
    /// Starts a clock that may run for `limit`.
    pub fn start(limit: Duration) -> Self {
        let state = State { elapsed: Duration::ZERO, running_since: Some(Instant::now()), pauses: 0 };
        Self { state: Arc::new(Mutex::new(state)), limit }
    }

    /// How long the call may run in all.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// How long the call has run, pauses left out.
    pub fn elapsed(&self) -> Duration {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.elapsed + state.running_since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// What is left; zero when time is up. While paused it stays as it is, so whoever waits asks again afterwards.
    pub fn remaining(&self) -> Duration {
        self.limit.saturating_sub(self.elapsed())
    }

    /// Stops the clock until the guard is dropped; guards may overlap.
    pub fn pause(&self) -> PauseGuard {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.pauses += 1;
        if let Some(since) = state.running_since.take() {
            state.elapsed += since.elapsed();
        }
        PauseGuard(Arc::clone(&self.state))
    }
}

impl Drop for PauseGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.pauses = state.pauses.saturating_sub(1);
        if state.pauses == 0 {
            state.running_since = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_do_not_count_even_when_they_overlap() {
        let clock = CallClock::start(Duration::from_secs(10));
        let first = clock.pause();
        let second = clock.pause();
        let before = clock.elapsed();
        drop(first);
        assert_eq!(clock.elapsed(), before, "one guard still holds the clock");
        drop(second);
        assert!(clock.remaining() <= Duration::from_secs(10));
    }
}
