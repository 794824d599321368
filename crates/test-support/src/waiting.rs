//! Waiting for what must happen, and reading what a server writes.

use std::{
    io::{BufRead, BufReader, Read},
    sync::mpsc::{self, Receiver},
    thread,
    time::{Duration, Instant},
};

use serde::de::DeserializeOwned;

use crate::DEADLINE;

/// Waits until something holds; panics with `what` if it does not within [`DEADLINE`].
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !holds() {
        assert!(Instant::now() < end, "{what} did not come about");
        thread::sleep(Duration::from_millis(20));
    }
}

/// The lines of an output as JSON, as they come; a line that is none fails whoever waits for the next one.
pub fn json_lines<T: DeserializeOwned + Send + 'static>(output: impl Read + Send + 'static) -> Receiver<T> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let line = line.expect("the server writes UTF-8");
            let _ = sender.send(serde_json::from_str(&line).expect("each line is JSON"));
        }
    });
    lines
}
