//! A runtime whose scripts are single words.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use skillz_json::{Value, json};
use skillz_tool::{
    Draft, Host, LogLevel, Output, Prepared, Progress, SourceCode, Tool, ToolCall, ToolError, ToolOutcome, ToolRuntime,
};

/// Runs words, and counts what goes on.
#[derive(Default)]
pub(crate) struct Words {
    /// Calls that were started.
    pub(crate) started: AtomicUsize,
    /// Calls that are going on.
    pub(crate) running: Arc<AtomicUsize>,
}

struct Going(Arc<AtomicUsize>);

impl Drop for Going {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl ToolRuntime for Words {
    async fn prepare(&self, mut draft: Draft, host: Arc<dyn Host>) -> Result<Prepared, ToolError> {
        host.progress(Progress { current: 1.0, total: Some(1.0), message: Some("reading".to_owned()) });
        let SourceCode::Text(source) = &draft.source else { return Err(ToolError::invalid("words only")) };
        if source == "broken" {
            return Err(ToolError::invalid("The word `broken` does not compile"));
        }
        let file = draft.manifest.entry_file.get_or_insert_with(|| "main.txt".to_owned()).clone();
        std::fs::write(draft.directory.join(file), source).map_err(ToolError::internal)?;
        let size_bytes = source.len() as u64;
        Ok(Prepared { manifest: draft.manifest, size_bytes, notes: Vec::new() })
    }

    async fn call(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        self.started.fetch_add(1, Ordering::SeqCst);
        self.running.fetch_add(1, Ordering::SeqCst);
        let _going = Going(Arc::clone(&self.running));
        let word = std::fs::read_to_string(call.tool.source_path()?).map_err(ToolError::internal)?;
        speak(&word, &call, host.as_ref()).await
    }

    fn retire(&self, _tool: &Tool) {}
}

fn name_form() -> Value {
    json!({"type": "object", "title": "user_name", "properties": {"name": {"type": "string"}}, "required": ["name"]})
}

fn prompt() -> Value {
    json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Capital of France?"}}], "maxTokens": 50})
}

async fn speak(word: &str, call: &ToolCall, host: &dyn Host) -> Result<ToolOutcome, ToolError> {
    let value = match word {
        "echo" => Value::Object(call.arguments.clone()),
        "list" => json!([1, 2]),
        "ask" => json!(host.ask_user("What is your name?", name_form()).await?),
        "ask-twice" => {
            let first = host.ask_user("First?", name_form()).await?;
            let second = host.ask_user("Second?", name_form()).await?;
            json!({"first": first, "second": second})
        }
        "ask-all" => {
            let (user, model, roots) = tokio::join!(host.ask_user("Name?", name_form()), host.sample(prompt()), host.roots());
            json!({"user": user?, "model": model?, "roots": roots?})
        }
        "sample" => host.sample(prompt()).await?,
        "roots" => host.roots().await?,
        "resources" => host.list_resources().await?,
        "history" => host.read_resource("skillz://history").await?,
        "wait" => {
            host.progress(Progress { current: 1.0, total: None, message: Some("waiting".to_owned()) });
            std::future::pending::<Value>().await
        }
        "report" => {
            for step in [1.0, 2.0, 2.0] {
                host.progress(Progress { current: step, total: Some(3.0), message: Some(format!("step {step}")) });
            }
            host.log(LogLevel::Debug, "fine detail", None);
            host.log(LogLevel::Warning, "careful", Some(json!({"a": 1})));
            json!({"done": true})
        }
        "image" => {
            json!({"content": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}, {"type": "text", "text": "a picture"}]})
        }
        "fail" => return Err(ToolError::failed("The word `fail` fails").with_hint("Say another word")),
        other => return Ok(ToolOutcome { output: Output::Printed(other.to_owned()), notes: Vec::new() }),
    };
    Ok(ToolOutcome::value(value))
}
