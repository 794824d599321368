//! One step of a run: its condition, its arguments, its calls.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Instant,
};

use futures::{StreamExt, stream};
use skillz_json::{Map, Value};
use skillz_tool::{ErrorKind, Host, ToolError};

use crate::{
    model::{OnError, Step},
    reference::describe,
    report::{StepReport, StepStatus, shorten},
    scope::{Scope, StepResult},
};

/// Most items of one `for_each`.
const MOST_ITEMS: usize = 100_000;

/// A step that has ended.
pub(crate) struct StepRun {
    pub(crate) report: StepReport,
    pub(crate) result: StepResult,
    /// The failure that ends the pipeline.
    pub(crate) stop: Option<ToolError>,
}

/// A call that failed, with what it was given.
struct CallFailure {
    error: ToolError,
    got: Option<Value>,
}

/// What running a step's calls came to.
enum Ended {
    Skipped,
    Value(Value),
    /// Some items failed, and the pipeline goes on with null in their places.
    Partly(Value, CallFailure),
    Failed(CallFailure),
}

/// Runs one step to its end. Dropping the future gives its calls up.
pub(crate) async fn run_step(step: &Step, scope: Scope<'_>, host: &dyn Host) -> StepRun {
    let started = Instant::now();
    let running = Running { step, host, attempts: AtomicU32::new(0) };
    let (ended, items) = running.run(scope).await;
    let mut report = StepReport {
        name: step.name.clone(),
        tool: step.tool.clone(),
        status: StepStatus::Ok,
        ms: (started.elapsed().as_secs_f64() * 1_000_000.0).round() / 1_000.0,
        attempts: running.attempts.load(Ordering::Relaxed),
        items,
        error: None,
        got: None,
    };
    let (result, stop) = match ended {
        Ended::Skipped => {
            report.status = StepStatus::Skipped;
            (StepResult::Skipped, None)
        }
        Ended::Value(value) => (StepResult::Value(value), None),
        Ended::Partly(value, failure) => {
            report.set_failure(&failure);
            (StepResult::Value(value), None)
        }
        Ended::Failed(failure) => {
            report.set_failure(&failure);
            (StepResult::Failed, (!step.on_error.go_on).then_some(failure.error))
        }
    };
    StepRun { report, result, stop }
}

impl StepReport {
    fn set_failure(&mut self, failure: &CallFailure) {
        self.status = StepStatus::Failed;
        self.error = Some(failure.error.text());
        self.got = failure.got.as_ref().map(shorten);
    }
}

struct Running<'a> {
    step: &'a Step,
    host: &'a dyn Host,
    attempts: AtomicU32,
}

impl Running<'_> {
    async fn run(&self, scope: Scope<'_>) -> (Ended, Option<usize>) {
        if !self.step.condition_is_per_item() {
            match self.condition_holds(&scope) {
                Ok(true) => {}
                Ok(false) => return (Ended::Skipped, None),
                Err(failure) => return (Ended::Failed(failure), None),
            }
        }
        let Some(items) = &self.step.for_each else {
            let ended = match self.call(&scope).await {
                Ok(value) => Ended::Value(value),
                Err(failure) => Ended::Failed(failure),
            };
            return (ended, None);
        };
        match items.fill(&scope).map_err(reference_failure).and_then(into_items) {
            Ok(items) => (self.run_items(&items, scope).await, Some(items.len())),
            Err(failure) => (Ended::Failed(failure), None),
        }
    }

    /// Runs every item, so many at once, and keeps their order. Items that a condition leaves out have no result.
    async fn run_items(&self, items: &[Value], scope: Scope<'_>) -> Ended {
        let work = (0..items.len()).map(|index| self.run_item(items, index, scope));
        let mut work = stream::iter(work).buffered(self.step.parallel);
        let mut values = Vec::with_capacity(items.len());
        let mut first_failure: Option<CallFailure> = None;
        let (mut failed, mut index) = (0_usize, 0_usize);
        while let Some(result) = work.next().await {
            match result {
                Ok(Some(value)) => values.push(value),
                Ok(None) => {}
                Err(mut failure) => {
                    failure.error.message = format!("Item {index} of {}: {}", items.len(), failure.error.message);
                    if !self.step.on_error.go_on {
                        return Ended::Failed(failure);
                    }
                    failed += 1;
                    values.push(Value::Null);
                    first_failure.get_or_insert(failure);
                }
            }
            index += 1;
        }
        match first_failure {
            None => Ended::Value(Value::Array(values)),
            Some(mut failure) => {
                failure.error.message = format!("{failed} of {} items failed. {}", items.len(), failure.error.message);
                Ended::Partly(Value::Array(values), failure)
            }
        }
    }

    async fn run_item(&self, items: &[Value], index: usize, scope: Scope<'_>) -> Result<Option<Value>, CallFailure> {
        let Some(item) = items.get(index) else { return Ok(None) };
        let index = Value::from(index);
        let scope = Scope { item: Some((item, &index)), ..scope };
        if self.step.condition_is_per_item() && !self.condition_holds(&scope)? {
            return Ok(None);
        }
        self.call(&scope).await.map(Some)
    }

    fn condition_holds(&self, scope: &Scope<'_>) -> Result<bool, CallFailure> {
        let Some(condition) = &self.step.condition else { return Ok(true) };
        condition.holds(scope).map_err(|fault| reference_failure(format!("In the condition: {fault}")))
    }

    /// Calls the tool, again where that is asked for and may help.
    async fn call(&self, scope: &Scope<'_>) -> Result<Value, CallFailure> {
        let mut attempt = 1;
        loop {
            let arguments = self.arguments(scope)?;
            self.attempts.fetch_add(1, Ordering::Relaxed);
            match self.host.call_tool(&self.step.tool, arguments).await {
                Ok(value) => return Ok(value),
                Err(error) if attempt > self.step.on_error.retries || !may_help(error.kind) => {
                    // Filled in once more: only a failure needs the arguments after the call.
                    return Err(CallFailure { error, got: self.arguments(scope).ok().map(Value::Object) });
                }
                Err(_) => tokio::time::sleep(OnError::pause(attempt)).await,
            }
            attempt += 1;
        }
    }

    fn arguments(&self, scope: &Scope<'_>) -> Result<Map<String, Value>, CallFailure> {
        match self.step.arguments.fill(scope).map_err(reference_failure)? {
            Value::Object(arguments) => Ok(arguments),
            other => Err(reference_failure(format!("`args` must come to an object, not {}", describe(&other)))),
        }
    }
}

/// Whether the same call may succeed later.
fn may_help(kind: ErrorKind) -> bool {
    !matches!(kind, ErrorKind::NotFound | ErrorKind::InvalidInput | ErrorKind::Denied | ErrorKind::Cancelled | ErrorKind::Config)
}

fn reference_failure(fault: String) -> CallFailure {
    CallFailure { error: ToolError::failed(fault), got: None }
}

fn into_items(value: Value) -> Result<Vec<Value>, CallFailure> {
    match value {
        Value::Array(items) if items.len() <= MOST_ITEMS => Ok(items),
        Value::Array(items) => {
            Err(reference_failure(format!("`for_each` has {} items; at most {MOST_ITEMS} are allowed", items.len())))
        }
        other => Err(reference_failure(format!("`for_each` must come to an array, not {}", describe(&other)))),
    }
}
