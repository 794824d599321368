//! What the operator decided: settings from all layers, each with where it came from.
//!
//! Lowest first: defaults, `$SKILLZ_HOME/config.toml`, `.skillz.toml` in the workspace (which may only narrow),
//! environment variables, flags. This crate is the only reader of the process environment; it knows no other crate.
#![warn(missing_docs)]

mod env_vars;
mod environment;
mod error;
mod file;
mod keys;
mod resolve;
mod secret;
mod settings;

pub use env_vars::{VARIABLES, Variable};
pub use environment::Environment;
pub use error::{ConfigError, Fault};
pub use keys::{KEYS, Key, Kind};
pub use resolve::{Entry, Flags, Resolved, Source, resolve};
pub use secret::Secret;
pub use settings::{
    Exposure, ForwardEnvironment, HttpSettings, ImportSettings, LimitCaps, LogFormat, MemorySettings, PolicyMode, PolicySettings,
    Sandbox, Settings, Transport, WorkerSettings,
};
