//! Results that are too long for one answer, kept on disk for an hour.

/// A long result, as kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredResult {
    /// All of its text.
    pub text: String,
    /// `application/json` or `text/plain`.
    pub mime_type: &'static str,
}

/// Keeps long results under unguessable names.
#[derive(Debug)]
pub struct ResultStore {}

impl ResultStore {
    /// The result behind `skillz://results/<id>`, if it is still kept. An id of any other form is simply unknown.
    pub async fn read(&self, id: &str) -> Option<StoredResult> {
        let _ = id;
        todo!()
    }
}
