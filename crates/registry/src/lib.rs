//! Tools on disk: loads them, watches them, publishes them, and keeps every version of them.
//!
//! The engine stages a folder, has a runtime prepare it, tries its examples, and publishes it here. Nothing
//! here runs, compiles or checks a tool, and nothing here knows of the engine or of MCP.
#![warn(missing_docs)]

mod breaking;
mod catalog;
mod diff;
mod discover;
mod edit;
mod error;
mod event;
mod folders;
mod front_matter;
mod handover;
mod hash;
mod layout;
mod live;
mod load;
mod lock;
mod manifest_file;
mod publication;
mod publish;
mod registry;
mod shared;
mod shelf;
mod skill;
mod staging;
mod standing;
mod swap;
mod trash;
mod tree;
mod versions;
mod walk;
mod watch;

pub use breaking::breaks_callers;
pub use catalog::{BrokenTool, Catalog, Generation};
pub use discover::{DiscoveredSkill, DiscoveredTool, Discovery, DiscoveryFault};
pub use error::RegistryError;
pub use event::RegistryEvent;
pub use publication::{Expectation, Publication, StagedEdit, StagedVersion, VersionEntry, VersionList};
pub use registry::{Registry, RegistrySettings};
pub use shelf::SkillShelf;
pub use skill::Skill;
pub use staging::{StagedFolder, StagingDirectory};
pub use walk::version_files;
