//! What MCP sees: built-in tools, tools of the engine, resources, prompts, and the notes about their changes.
//!
//! One handler serves every protocol version that clients speak. It turns requests into calls of the engine
//! and knows nothing of files, processes and databases; bytes and connections are the transport's business.
#![warn(missing_docs)]

mod builtin;
mod calls;
mod completion;
mod convert;
mod counters;
mod fixtures;
mod handler;
mod host_resources;
mod listing;
mod methods;
mod notify;
mod outlet;
mod page;
mod parked;
mod port;
mod prompts;
mod question;
mod read;
mod resources;
mod running;
mod schema_form;
mod session;
mod skills;
mod uri;

pub use handler::SkillzServer;
pub use session::ClientOrigin;
