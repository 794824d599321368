//! What a program has printed and asked for since the driver last looked.

use std::cell::{Cell, RefCell};

use rquickjs::{Error, Result};

use crate::message::Request;

/// So many bytes are worth sending at once.
const LARGE: usize = 64 << 10;

/// One thing to send.
pub(crate) enum Action {
    Print(String),
    Request(u32, Request),
}

/// Actions in their order.
pub(crate) struct Outbox {
    actions: RefCell<Vec<Action>>,
    bytes: Cell<usize>,
    output_left: Cell<u64>,
    exceeded: Cell<bool>,
    /// Requests without an answer.
    open: Cell<usize>,
}

impl Outbox {
    pub(crate) fn new(output_bytes: u64) -> Self {
        Self {
            actions: RefCell::default(),
            bytes: Cell::new(0),
            output_left: Cell::new(output_bytes),
            exceeded: Cell::new(false),
            open: Cell::new(0),
        }
    }

    pub(crate) fn print(&self, text: &str) -> Result<()> {
        let Some(left) = self.output_left.get().checked_sub(text.len() as u64) else {
            self.exceeded.set(true);
            return Err(Error::Unknown);
        };
        self.output_left.set(left);
        self.bytes.set(self.bytes.get() + text.len());
        let mut actions = self.actions.borrow_mut();
        match actions.last_mut() {
            Some(Action::Print(before)) => before.push_str(text),
            _ => actions.push(Action::Print(text.to_owned())),
        }
        Ok(())
    }

    pub(crate) fn request(&self, id: u32, message: &str) -> Result<()> {
        // The kit writes these; a program cannot reach the function.
        let request = serde_json::from_str(message).map_err(|_| Error::Unknown)?;
        self.open.set(self.open.get() + 1);
        self.bytes.set(self.bytes.get() + message.len());
        self.actions.borrow_mut().push(Action::Request(id, request));
        Ok(())
    }

    pub(crate) fn take(&self) -> Vec<Action> {
        self.bytes.set(0);
        self.actions.take()
    }

    pub(crate) fn is_large(&self) -> bool {
        self.bytes.get() > LARGE
    }

    pub(crate) fn has_printed_too_much(&self) -> bool {
        self.exceeded.get()
    }

    pub(crate) fn answered(&self) {
        self.open.set(self.open.get().saturating_sub(1));
    }

    pub(crate) fn open(&self) -> usize {
        self.open.get()
    }
}
