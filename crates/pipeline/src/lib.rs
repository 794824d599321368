//! Pipelines: tools called one after the other, each fed by those before it.
//!
//! [`Pipeline`] is what `pipeline_steps` of a manifest means, read and checked once; [`PipelineRuntime`] makes
//! such tools and runs them. Every step is an ordinary call through [`skillz_tool::Host`]: nothing here knows
//! how tools run, where they are kept, or who may call them.
#![warn(missing_docs)]

mod catalogue;
mod check;
mod condition;
mod cycle;
mod fault;
mod infer;
mod model;
mod parse;
mod reference;
mod report;
mod run;
mod runtime;
mod schema_path;
mod scope;
mod step;
mod template;

pub use catalogue::{Catalogue, CatalogueTool};
pub use check::check;
pub use fault::{Fault, Faults};
pub use model::{OnError, Pipeline, Step};
pub use report::{StepReport, StepStatus};
pub use run::{PipelineRun, run};
pub use runtime::PipelineRuntime;
