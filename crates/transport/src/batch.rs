//! Answers to JSON-RPC batches, which only protocol 2025-03-26 has: they are gathered and written as one array.

use std::collections::HashSet;

use rmcp::model::RequestId;
use serde_json::Value;

/// Batches that still wait for answers.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    open: Vec<Batch>,
}

#[derive(Debug)]
struct Batch {
    waiting: HashSet<RequestId>,
    answers: Vec<Value>,
}

impl Batches {
    /// Opens a batch that waits for `waiting` and has `answers` already. Gives it back at once if it is complete.
    pub(crate) fn open(&mut self, waiting: HashSet<RequestId>, answers: Vec<Value>) -> Option<Value> {
        if waiting.is_empty() {
            return (!answers.is_empty()).then_some(Value::Array(answers));
        }
        self.open.push(Batch { waiting, answers });
        None
    }

    /// Whether the answer to `id` belongs to a batch.
    pub(crate) fn wants(&self, id: &RequestId) -> bool {
        self.open.iter().any(|batch| batch.waiting.contains(id))
    }

    /// Takes the answer to `id`, or, with `None`, the news that none will come. Gives the batch if that completes it.
    pub(crate) fn settle(&mut self, id: &RequestId, answer: Option<Value>) -> Option<Value> {
        let index = self.open.iter().position(|batch| batch.waiting.contains(id))?;
        let batch = self.open.get_mut(index)?;
        batch.waiting.remove(id);
        batch.answers.extend(answer);
        if !batch.waiting.is_empty() {
            return None;
        }
        let answers = self.open.swap_remove(index).answers;
        (!answers.is_empty()).then_some(Value::Array(answers))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_batch_is_complete_when_every_request_is_settled() {
        let mut batches = Batches::default();
        let (first, second) = (RequestId::Number(1), RequestId::String("b".into()));
        assert_eq!(batches.open(HashSet::from([first.clone(), second.clone()]), vec![json!(0)]), None);
        assert!(batches.wants(&first) && !batches.wants(&RequestId::Number(9)));
        assert_eq!(batches.settle(&first, Some(json!(1))), None);
        assert_eq!(batches.settle(&first, Some(json!(1))), None, "settled once only");
        assert_eq!(batches.settle(&second, None), Some(json!([0, 1])));
        assert!(!batches.wants(&second));
    }

    #[test]
    fn a_batch_without_requests_is_answered_at_once_or_never() {
        let mut batches = Batches::default();
        assert_eq!(batches.open(HashSet::new(), vec![json!(1)]), Some(json!([1])));
        assert_eq!(batches.open(HashSet::new(), Vec::new()), None);
    }
}
