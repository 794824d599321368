//! A run of a pipeline, block by block.

use futures::{StreamExt, stream::FuturesUnordered};
use skillz_json::{Map, Value};
use skillz_tool::{Host, Progress, ToolError};

use crate::{
    model::{Pipeline, Step},
    report::{StepReport, StepStatus},
    scope::{Scope, StepResult},
    step::{StepRun, run_step},
};

/// A run that has ended.
#[derive(Debug)]
pub struct PipelineRun {
    /// The last step's value, or the failure that ended the run.
    pub result: Result<Value, ToolError>,
    /// Every step in its order, those that did not run included.
    pub steps: Vec<StepReport>,
}

/// Runs a pipeline with `input` as its arguments. Dropping the future gives the calls up that go on.
pub async fn run(pipeline: &Pipeline, input: Map<String, Value>, host: &dyn Host) -> PipelineRun {
    let input = Value::Object(input);
    let count = pipeline.steps.len();
    let mut results = vec![StepResult::NotRun; count];
    let mut reports: Vec<Option<StepReport>> = vec![None; count];
    let mut previous: Option<Value> = None;
    let mut stopped = None;
    for block in &pipeline.blocks {
        let steps = pipeline.steps.get(block.clone()).unwrap_or_default();
        let scope = Scope { input: &input, previous: previous.as_ref(), results: &results, item: None };
        let ended = match steps {
            [step] => vec![(0, run_step(step, scope, host).await)],
            _ => run_together(steps, scope, host).await,
        };
        for (offset, run) in ended {
            let position = block.start + offset;
            stopped = stopped.or_else(|| run.stop.map(|error| (position, error)));
            if let (Some(result), Some(report)) = (results.get_mut(position), reports.get_mut(position)) {
                *result = run.result;
                *report = Some(run.report);
            }
        }
        if stopped.is_some() {
            break;
        }
        previous = match results.get(block.clone()).unwrap_or_default() {
            [StepResult::Skipped | StepResult::NotRun] => previous,
            [StepResult::Failed] => Some(Value::Null),
            [StepResult::Value(value)] => Some(value.clone()),
            members => Some(by_name(steps, members)),
        };
        host.progress(Progress {
            current: block.end as f64,
            total: Some(count as f64),
            message: steps.last().map(|step| step.name.clone()),
        });
    }
    let result = match stopped {
        Some((position, error)) => Err(failure(pipeline, position, error, reports.get(position).and_then(Option::as_ref))),
        None => Ok(previous.unwrap_or(Value::Null)),
    };
    let steps = reports.into_iter().zip(&pipeline.steps).map(|(report, step)| report.unwrap_or_else(|| not_run(step))).collect();
    PipelineRun { result, steps }
}

/// Runs the steps of a group at once, until all have ended or one ends the pipeline.
async fn run_together(steps: &[Step], scope: Scope<'_>, host: &dyn Host) -> Vec<(usize, StepRun)> {
    let mut running: FuturesUnordered<_> =
        steps.iter().enumerate().map(|(offset, step)| async move { (offset, run_step(step, scope, host).await) }).collect();
    let mut ended = Vec::with_capacity(steps.len());
    while let Some((offset, run)) = running.next().await {
        let stops = run.stop.is_some();
        ended.push((offset, run));
        if stops {
            break;
        }
    }
    ended
}

/// What `$prev` is after a group: an object by step name.
fn by_name(steps: &[Step], results: &[StepResult]) -> Value {
    let members = steps.iter().zip(results).map(|(step, result)| {
        let value = match result {
            StepResult::Value(value) => value.clone(),
            StepResult::Failed | StepResult::Skipped | StepResult::NotRun => Value::Null,
        };
        (step.name.clone(), value)
    });
    Value::Object(members.collect())
}

/// The failure that the caller sees: which step, what it got, and the tool's own words.
fn failure(pipeline: &Pipeline, position: usize, mut error: ToolError, report: Option<&StepReport>) -> ToolError {
    let step = pipeline.steps.get(position).map(|step| format!("`{}` (tool `{}`)", step.name, step.tool)).unwrap_or_default();
    let attempts = report.map(|report| report.attempts).filter(|attempts| *attempts > 1);
    let attempts = attempts.map(|attempts| format!(" after {attempts} calls")).unwrap_or_default();
    let got = report.and_then(|report| report.got.as_ref()).map(|got| format!("\nIt got {got}")).unwrap_or_default();
    error.message = format!("Step {} {step} failed{attempts}: {}{got}", position + 1, error.message);
    error
}

fn not_run(step: &Step) -> StepReport {
    StepReport {
        name: step.name.clone(),
        tool: step.tool.clone(),
        status: StepStatus::Skipped,
        ms: 0.0,
        attempts: 0,
        items: None,
        error: None,
        got: None,
    }
}
