//! Pipelines as tools.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use async_trait::async_trait;
use skillz_json::{Map, Value};
use skillz_tool::{CallClock, Draft, ErrorKind, Host, Prepared, Tool, ToolCall, ToolError, ToolOutcome, ToolRuntime};

use crate::{
    catalogue::Catalogue,
    check::check,
    infer::input_schema,
    model::Pipeline,
    run::{PipelineRun, run},
};

/// Makes and runs tools of kind pipeline.
pub struct PipelineRuntime {
    catalogue: Arc<dyn Catalogue>,
    /// Pipelines read so far, by name; each with the hash of the version that it belongs to.
    read: Mutex<HashMap<String, (String, Arc<Pipeline>)>>,
}

impl PipelineRuntime {
    /// A runtime whose pipelines are checked against `catalogue`.
    pub fn new(catalogue: Arc<dyn Catalogue>) -> Self {
        Self { catalogue, read: Mutex::default() }
    }

    /// Runs a pipeline and tells of every step; a failure is part of the run. An error means that there was none.
    pub async fn run_with_report(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<PipelineRun, ToolError> {
        let pipeline = self.pipeline(&call.tool)?;
        let clock = call.clock.clone();
        let name = call.tool.name.clone();
        tokio::select! {
            run = run(&pipeline, with_defaults(call.arguments, &call.tool), &*host) => Ok(run),
            () = time_is_up(&clock) => {
                let limit_ms = clock.limit().as_millis();
                let message = format!("The pipeline `{name}` ran longer than its limit of {limit_ms} ms and was stopped");
                Err(ToolError::new(ErrorKind::TimedOut, message).with_hint("Raise `limits.timeout_ms` of the pipeline, or let it do less"))
            }
        }
    }

    /// The tool's pipeline, read at its first call.
    fn pipeline(&self, tool: &Tool) -> Result<Arc<Pipeline>, ToolError> {
        let name = tool.name.as_str();
        if let Some((hash, pipeline)) = self.read.lock().unwrap_or_else(PoisonError::into_inner).get(name)
            && *hash == tool.hash
        {
            return Ok(Arc::clone(pipeline));
        }
        let steps = tool.manifest.pipeline_steps.as_ref().ok_or_else(|| no_steps(name))?;
        let pipeline = Pipeline::read(steps).map_err(|faults| faults.into_error(name, ErrorKind::Config))?;
        let pipeline = Arc::new(pipeline);
        // Without a hash one version cannot be told from another.
        if !tool.hash.is_empty() {
            let entry = (tool.hash.clone(), Arc::clone(&pipeline));
            self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), entry);
        }
        Ok(pipeline)
    }
}

#[async_trait]
impl ToolRuntime for PipelineRuntime {
    async fn prepare(&self, draft: Draft, _host: Arc<dyn Host>) -> Result<Prepared, ToolError> {
        let mut manifest = draft.manifest;
        let steps = manifest.pipeline_steps.as_ref().ok_or_else(|| no_steps(&manifest.name))?;
        let pipeline = check(&manifest.name, steps, manifest.input_schema.as_ref(), &*self.catalogue)
            .map_err(|faults| faults.into_error(&manifest.name, ErrorKind::InvalidInput))?;
        let size_bytes = steps.to_string().len() as u64;
        if manifest.input_schema.is_none() {
            manifest.input_schema = input_schema(&pipeline, &*self.catalogue);
        }
        Ok(Prepared { manifest, size_bytes, notes: Vec::new() })
    }

    async fn call(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        let run = self.run_with_report(call, host).await?;
        run.result.map(ToolOutcome::value)
    }

    fn retire(&self, tool: &Tool) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.get(tool.name.as_str()).is_some_and(|(hash, _)| *hash == tool.hash) {
            read.remove(tool.name.as_str());
        }
    }
}

/// The arguments, and the schema's `default` for each property that is not among them: no step could fill it in.
fn with_defaults(mut arguments: Map<String, Value>, tool: &Tool) -> Map<String, Value> {
    let properties = tool.input_schema.as_value().get("properties").and_then(Value::as_object);
    for (name, schema) in properties.into_iter().flatten() {
        if let Some(default) = schema.get("default").filter(|_| !arguments.contains_key(name)) {
            arguments.insert(name.clone(), default.clone());
        }
    }
    arguments
}

fn no_steps(name: &str) -> ToolError {
    ToolError::invalid(format!(
        "The pipeline `{name}` has no steps; give `steps`, such as `[{{\"tool\": \"name\", \"args\": {{}}}}]`"
    ))
}

/// Ends when the clock has run out. While it is paused its rest stays the same, so it is asked again.
async fn time_is_up(clock: &CallClock) {
    loop {
        let remaining = clock.remaining();
        if remaining.is_zero() {
            return;
        }
        tokio::time::sleep(remaining).await;
    }
}
