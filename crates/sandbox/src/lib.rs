//! What a confined process may see and do, and the ways to make it so.
//!
//! A [`Policy`] is data; [`SandboxKind`] says who enforces it; `builtin` is the part that runs in the process to be
//! confined, `bubblewrap` writes the command line of that program. Nothing here starts a program: `skillz-process` does, and applies the policy in the child.
#![warn(missing_docs)]

#[cfg(target_os = "linux")]
pub mod bubblewrap;
#[cfg(target_os = "linux")]
pub mod builtin;
mod kind;
mod policy;

pub use kind::SandboxKind;
pub use policy::Policy;
