//! Tools on disk: loads them, watches them, publishes them, and keeps every version of them.
//!
//! The engine stages a folder, has a runtime prepare it, tries its examples, and publishes it here. Nothing
//! here runs, compiles or checks a tool, and nothing here knows of the engine or of MCP.
#![warn(missing_docs)]

mod catalog;
mod error;
mod event;
mod publication;
mod registry;
mod staging;

pub use catalog::{BrokenTool, Catalog, Generation};
pub use error::RegistryError;
pub use event::RegistryEvent;
pub use publication::{Expectation, Publication, StagedEdit, StagedVersion, VersionEntry, VersionList};
pub use registry::{Registry, RegistrySettings};
pub use staging::StagingDirectory;
