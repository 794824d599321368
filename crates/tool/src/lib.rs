//! The vocabulary of Skillz: what a tool is, what a call of it is, and what a running tool may ask for.
//!
//! Every other crate speaks in these types. Nothing here does IO or knows of an async runtime: the two
//! traits at the heart ([`ToolRuntime`] and [`Host`]) only say which futures exist.
#![warn(missing_docs)]

mod call;
mod clock;
mod content;
mod error;
mod example;
mod fetch;
mod host;
mod host_request;
mod limits;
mod manifest;
mod name;
mod outcome;
mod permissions;
mod runtime;
mod schema;
mod secret_arguments;
mod stores;
mod tool;
mod upstreams;
mod version;

pub use call::{CallContext, ClientCapabilities, EnvironmentVariable, FolderGrant, Grants, ToolCall};
pub use clock::{CallClock, PauseGuard};
pub use content::{ContentError, McpContent};
pub use error::{ErrorKind, ToolError};
pub use example::{Example, ExampleFailure};
pub use fetch::{FetchProgress, FetchRequest, Fetched, SourceFetcher};
pub use host::{Answer, AnswerAction, Host, LogLevel, Progress};
pub use host_request::{HostRequestError, dispatch_notification, dispatch_request};
pub use limits::{EffectiveLimits, Limits};
pub use manifest::{Annotations, Inferred, Isolation, Manifest, Protocol, ToolKind};
pub use name::{BUILTIN_NAMES, NameError, ToolName};
pub use outcome::{Output, ToolOutcome};
pub use permissions::{FolderMode, FolderPermission, HostPattern, NetworkPermission, Permissions};
pub use runtime::{Draft, Prepared, SourceCode, ToolRuntime};
pub use schema::{CompiledSchema, SchemaError, Violation};
pub use secret_arguments::split_secrets;
pub use stores::{CallRecord, HistoryStore, MemoryEntry, MemoryStats, MemoryStore, StoreError};
pub use tool::{Origin, Tool};
pub use upstreams::{ServerDefinition, UpstreamTools, Upstreams, expand_variables, variables_in};
pub use version::{ParseVersionError, Version};
