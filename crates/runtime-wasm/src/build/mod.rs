//! From source text to a module: the toolchain, dependencies, one confined run of rustc, and what it said.

mod compiler;
mod crates;
mod dependency;
mod diagnostics;
mod guest_crate;
mod progress;
mod project;
mod rust;
mod source;
mod stamp;
mod toolchain;

pub(crate) use crates::{cannot_write, write_whole};
pub(crate) use rust::{Built, RustBuilder, RustSource};
pub(crate) use stamp::{SourceHash, Stamped, read as read_stamp};
