//! The engine on a real registry, with a runtime whose tools are one line of instructions.

mod call;
mod follow;
mod host;
mod list;
mod pipeline;
mod policy;
mod publish;
mod support;
mod versions;
