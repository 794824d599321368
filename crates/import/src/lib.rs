//! Fetches what tools and skills are imported from: git repositories, gists, archives, single files, folders.
//!
//! Whatever comes is taken for hostile: git runs without hooks, helpers and configuration, archives are unpacked entry by
//! entry under limits, and links are never followed. What a source holds is the registry's business, publishing the engine's.
#![warn(missing_docs)]

mod archive;
mod download;
mod error;
mod gist;
mod git;
mod importer;
mod limits;
mod scratch;
mod source;
mod unpack;

pub use importer::{ImportSettings, Importer};
