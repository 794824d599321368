//! What the references of a step can see while it runs.

use skillz_json::Value;

use crate::reference::{Reference, Root};

/// How a step ended, as far as later ones see it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StepResult {
    NotRun,
    Skipped,
    Failed,
    Value(Value),
}

/// The values in reach of one step, or of one item of its `for_each`.
#[derive(Clone, Copy)]
pub(crate) struct Scope<'a> {
    pub(crate) input: &'a Value,
    pub(crate) previous: Option<&'a Value>,
    pub(crate) results: &'a [StepResult],
    /// The item with its index as a value.
    pub(crate) item: Option<(&'a Value, &'a Value)>,
}

static NULL: Value = Value::Null;

impl<'a> Scope<'a> {
    /// The value of a reference. The result of a step that was skipped or failed is null; a path into it is an error.
    pub(crate) fn resolve(&self, reference: &Reference) -> Result<&'a Value, String> {
        let written = &reference.written;
        let start = match reference.root {
            Root::Input => self.input,
            Root::Previous => self.previous.ok_or_else(|| format!("`{written}` has no value: no step ran before this one"))?,
            Root::Item => {
                self.item.map(|(item, _)| item).ok_or_else(|| format!("`{written}` has a value only inside `for_each`"))?
            }
            Root::Index => {
                self.item.map(|(_, index)| index).ok_or_else(|| format!("`{written}` has a value only inside `for_each`"))?
            }
            Root::Step(position) => return self.resolve_step(reference, position),
        };
        reference.follow(start)
    }

    fn resolve_step(&self, reference: &Reference, position: usize) -> Result<&'a Value, String> {
        let written = &reference.written;
        let why = match self.results.get(position) {
            Some(StepResult::Value(value)) => return reference.follow(value),
            Some(StepResult::Skipped) => "was skipped",
            Some(StepResult::Failed) => "failed",
            Some(StepResult::NotRun) | None => "did not run",
        };
        if written.path.is_empty() {
            return Ok(&NULL);
        }
        Err(format!("`{written}` leads nowhere: the step `{}` {why}, so that its result is null", written.root))
    }
}
