//! Tools of other MCP servers: imports the servers, keeps them running, and calls their tools.
//!
//! [`ImportedServers`] supervises: a task for each server connects, learns its tools, starts it again when it is lost.
//! [`UpstreamRuntime`] carries calls out. Messages pass as JSON values and not as typed structures, so that what a
//! server says reaches the client as it was said, and one tool of a wrong form costs nothing but itself.
#![warn(missing_docs)]

mod client;
mod connect;
mod connection;
mod definition;
mod error;
mod folder;
mod known;
mod link;
mod names;
mod question;
mod report;
mod runtime;
mod secrets;
mod served;
mod server;
mod servers;
mod settings;
mod tool;

pub use runtime::UpstreamRuntime;
pub use servers::ImportedServers;
pub use settings::{FindProgram, FoundProgram, Start, UpstreamSettings};
