//! The built-in `pipeline`: pipelines are tools whose source is a list of steps.

use std::{
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
};

use skillz_json::{Value, json};
use skillz_pipeline::{StepReport, StepStatus};
use skillz_tool::{Host, Manifest, Origin, SourceCode, Tool, ToolCall, ToolError, ToolKind, ToolOutcome};

use crate::{
    ClientPort, PipelineDefinition, PipelineRequest, PublishRequest, call::Invocation, engine::Engine, record::CallLog,
    tree::CallTree,
};

impl Engine {
    /// Makes, shows and runs pipelines, as the built-in `pipeline` answers.
    pub async fn pipeline(&self, request: PipelineRequest, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        match request {
            PipelineRequest::Create(definition) => self.create_pipeline(*definition, client).await,
            PipelineRequest::List => Ok(self.list_pipelines()),
            PipelineRequest::Show { name } => Ok(show(&*self.find_pipeline(&name)?)),
            PipelineRequest::Delete { name } => {
                self.find_pipeline(&name)?;
                let report = self.delete(&name).await?;
                skillz_json::to_value(report).map_err(ToolError::internal)
            }
            PipelineRequest::Run { name, arguments } => self.run_pipeline(&name, arguments, client).await,
        }
    }

    async fn create_pipeline(&self, definition: PipelineDefinition, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        let PipelineDefinition { name, description, steps, input_schema, examples, tags, overwrite } = definition;
        let mut manifest = Manifest::new(name, description, ToolKind::Pipeline);
        manifest.pipeline_steps = Some(steps);
        manifest.input_schema = input_schema;
        manifest.examples = examples;
        manifest.tags = tags;
        let request =
            PublishRequest { manifest, source: SourceCode::Folder, origin: Origin::Pipeline, overwrite, dry_run: false, client };
        let report = self.publish(request).await?;
        skillz_json::to_value(report).map_err(ToolError::internal)
    }

    fn list_pipelines(&self) -> Value {
        let view = self.view();
        let pipelines: Vec<Value> = view
            .offered()
            .filter(|tool| tool.kind() == ToolKind::Pipeline)
            .map(|tool| {
                let steps = tool.manifest.pipeline_steps.as_ref().and_then(Value::as_array).map_or(0, Vec::len);
                json!({"name": tool.name.as_str(), "description": tool.manifest.description, "version": tool.version, "steps": steps})
            })
            .collect();
        json!({"pipelines": pipelines})
    }

    fn find_pipeline(&self, name: &str) -> Result<Arc<Tool>, ToolError> {
        let view = self.view();
        let Some(callable) = view.callables.get(name) else { return Err(self.unknown_tool(name)) };
        if callable.tool.kind() != ToolKind::Pipeline {
            let kind = crate::publish::kind_name(callable.tool.kind());
            let message = format!("`{name}` is a tool of kind {kind} and no pipeline");
            return Err(ToolError::invalid(message)
                .with_hint("`pipeline(action: \"list\")` shows the pipelines; other tools are called directly"));
        }
        Ok(Arc::clone(&callable.tool))
    }

    /// Runs a pipeline on the one call path, and tells of every step.
    async fn run_pipeline(&self, name: &str, arguments: Value, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        self.find_pipeline(name)?;
        let callable = self.find(name, None).await?;
        let tree = Arc::new(CallTree::new(client));
        let call_id = self.next_call_id();
        let log = CallLog::open(self.history(), &callable.tool, &call_id, None, arguments.written_length() as u64);
        let steps = Mutex::default();
        let invocation = Invocation {
            callable: &callable,
            arguments,
            tree: &tree,
            caller: None,
            call_id,
            recorded: true,
            steps: Some(&steps),
        };
        let result = self.value(invocation, log).await;
        let steps = steps.into_inner().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(result) => Ok(json!({"result": result, "steps": steps})),
            Err(error) => Err(with_steps(error, &steps)),
        }
    }

    /// Runs a pipeline, and puts what its steps did where the caller looks for it.
    pub(crate) async fn run_with_report(
        &self,
        call: ToolCall,
        host: Arc<dyn Host>,
        steps: &Mutex<Vec<StepReport>>,
    ) -> Result<ToolOutcome, ToolError> {
        let run = self.pipelines().run_with_report(call, host).await?;
        *steps.lock().unwrap_or_else(PoisonError::into_inner) = run.steps;
        run.result.map(ToolOutcome::value)
    }
}

/// Adds a line for each step to a failed run.
fn with_steps(mut error: ToolError, steps: &[StepReport]) -> ToolError {
    if steps.is_empty() {
        return error;
    }
    let mut lines = error.output.take().map(|output| format!("{}\n", output.trim_end())).unwrap_or_default();
    for (position, step) in steps.iter().enumerate() {
        let status = match step.status {
            StepStatus::Ok => "ok",
            StepStatus::Failed => "failed",
            StepStatus::Skipped => "not run",
        };
        let _ = writeln!(lines, "step {} `{}` ({}): {status}, {:.1} ms", position + 1, step.name, step.tool, step.ms);
    }
    error.with_output(lines).with_data(json!({"steps": steps}))
}

fn show(tool: &Tool) -> Value {
    json!({
        "name": tool.name.as_str(), "description": tool.manifest.description, "version": tool.version,
        "steps": tool.manifest.pipeline_steps, "input_schema": tool.input_schema.as_value(), "examples": tool.manifest.examples,
        "tags": tool.manifest.tags,
    })
}
