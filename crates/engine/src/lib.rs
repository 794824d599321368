//! The heart: one path for every call, whoever makes it, and one path for every publish.
//!
//! A call goes find → check arguments → check permissions → run under limits → shape the result → record.
//! A publish goes prepare (compile, install) → run the examples → put it on disk → tell everybody.
//! The engine knows tools, runtimes and stores as traits; of MCP, HTTP, databases and WASM it knows nothing.
#![warn(missing_docs)]

mod arguments;
mod call;
mod callable;
mod catalogue;
mod client;
mod code;
mod consent;
mod draft;
mod engine;
mod examples;
mod exposure;
mod find;
mod folders;
mod follow;
mod host;
mod import;
mod import_report;
mod inspect;
mod list;
mod long;
mod machine;
mod merge;
mod pipeline;
mod policy;
mod publish;
mod queue;
mod record;
mod request;
mod resource;
mod results;
mod search;
mod secrets;
mod servers;
mod settings;
mod shape;
mod signature;
mod tree;
mod try_out;
mod versions;
mod view;
mod wish;

pub use client::{ClientPort, NoClient};
pub use code::{CodeRun, CodeRuntime};
pub use engine::{Engine, EngineParts};
pub use exposure::Exposed;
pub use import::ImportRequest;
pub use inspect::{
    CodeLanguage, CodeRequest, CodeRuntimeChoice, Detail, ListRequest, PipelineDefinition, PipelineRequest, VersionAction,
};
pub use machine::Machine;
pub use request::{CallFailure, CallReply, CallRequest, DeleteReport, ExampleCounts, PublishReport, PublishRequest};
pub use resource::ResourceSource;
pub use results::{ResultStore, StoredResult};
pub use servers::{ServerAction, ServerRequest};
pub use settings::{Concurrency, EngineSettings, Exposure, Policy, PolicyMode};
pub use skillz_registry::{Skill, SkillShelf};
