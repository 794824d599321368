//! The frame around a function with `#[skillz::tool]`: arguments in, result out.

use std::{fmt::Display, io::Read};

use serde::{de::DeserializeOwned, Serialize};
use serde_json::Value;

use crate::{
    host,
    reader::{self, Fault},
    Json,
};

/// How a call ends, as the message for the server.
pub enum Reply {
    /// A value, serialised.
    Value(serde_json::Result<Json>),
    /// A failure, in the tool's words.
    Failure(String),
}

/// What the function returned. Its `reply` is chosen by its type: a `Result` by the method of this type itself,
/// which goes first, anything else by [`ReturnedValue`].
pub struct Returned<T>(pub T);

impl<T: Serialize, E: Display> Returned<Result<T, E>> {
    /// The value, or the error's text.
    pub fn reply(self) -> Reply {
        match self.0 {
            Ok(value) => Reply::Value(Json::write(&value)),
            Err(error) => Reply::Failure(error.to_string()),
        }
    }
}

/// The reply of values that are no `Result`.
pub trait ReturnedValue {
    /// The value.
    fn reply(self) -> Reply;
}

impl<T: Serialize> ReturnedValue for Returned<T> {
    fn reply(self) -> Reply {
        Reply::Value(Json::write(&self.0))
    }
}

/// Reads the arguments, runs the function, and sends what came of it.
pub fn run<A: DeserializeOwned>(function: impl FnOnce(A) -> Reply) {
    let arguments = input().and_then(|text| reader::read(&text).map_err(unfit));
    finish(match arguments {
        Ok(arguments) => function(arguments),
        Err(message) => Reply::Failure(message),
    });
}

fn finish(reply: Reply) {
    let sent = match reply {
        Reply::Value(Ok(value)) => host::notify("tool/return", value.text()),
        Reply::Value(Err(error)) => fail(format!("The result cannot be written as JSON: {error}")),
        Reply::Failure(message) => fail(message),
    };
    if let Err(error) = sent {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn fail(message: String) -> crate::Result<()> {
    host::notify("tool/fail", &Value::String(message).to_string())
}

fn input() -> Result<String, String> {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(|error| format!("The arguments cannot be read: {error}"))?;
    Ok(if text.trim().is_empty() { "{}".to_owned() } else { text })
}

fn unfit(fault: Fault) -> String {
    format!("The arguments do not fit the function: {fault}")
}
