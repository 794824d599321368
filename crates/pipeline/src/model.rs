//! A pipeline as it is run: everything read once, references tied to what they mean.

use std::{ops::Range, time::Duration};

use skillz_json::Value;

use crate::{
    condition::Condition,
    fault::{Fault, Faults},
    parse::parse,
    reference::Reference,
    template::Template,
};

/// A pipeline, ready to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// The steps in their order.
    pub steps: Vec<Step>,
    /// Steps that run together: single ones, and neighbours of one group.
    pub(crate) blocks: Vec<Range<usize>>,
}

/// One step: one tool, called once, or once for each item.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// The step's name, given or made from its position (`step_1`).
    pub name: String,
    /// The tool to call.
    pub tool: String,
    /// What happens when the call fails.
    pub on_error: OnError,
    /// The group whose neighbours run together.
    pub group: Option<String>,
    /// How many items are worked on at once.
    pub parallel: usize,
    pub(crate) arguments: Template,
    pub(crate) condition: Option<Condition>,
    pub(crate) for_each: Option<Template>,
}

/// What happens when a step's call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnError {
    /// How often the call is made again before it counts as failed.
    pub retries: u32,
    /// Whether the pipeline goes on without the step's result.
    pub go_on: bool,
}

/// Pause before the first repetition; each further one is twice as long, up to [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

impl Pipeline {
    /// Reads `pipeline_steps`; every fault that shows without knowing the tools is listed.
    pub fn read(steps: &Value) -> Result<Self, Faults> {
        let mut faults: Vec<Fault> = Vec::new();
        let pipeline = parse(steps, &mut faults);
        if faults.is_empty() { Ok(pipeline) } else { Err(Faults(faults)) }
    }
}

impl OnError {
    /// How long to wait before the call is made again, after `failed` attempts.
    pub(crate) fn pause(failed: u32) -> Duration {
        FIRST_PAUSE.saturating_mul(1 << failed.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
    }
}

impl Step {
    /// Every reference of the step.
    pub(crate) fn references(&self) -> Vec<&Reference> {
        let condition = self.condition.iter().flat_map(Condition::references);
        self.arguments
            .references()
            .into_iter()
            .chain(self.for_each.iter().flat_map(Template::references))
            .chain(condition)
            .collect()
    }

    /// Whether the condition is about each item, and so picks items instead of deciding on the whole step.
    pub(crate) fn condition_is_per_item(&self) -> bool {
        use crate::reference::Root;
        let is_item = |reference: &&Reference| matches!(reference.root, Root::Item | Root::Index);
        self.condition.as_ref().is_some_and(|condition| condition.references().iter().any(is_item))
    }
}
