//! A small catalogue and a host that really carries its tools out, both kept in memory.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use skillz_json::{Map, Value, json};
use skillz_pipeline::{Catalogue, Pipeline, run};
use skillz_tool::{
    Answer, AnswerAction, ErrorKind, Host, LogLevel, Manifest, Progress, Tool, ToolError, ToolKind, ToolName, Version,
};

/// The tools that tests know.
#[derive(Default)]
pub(crate) struct Tools(HashMap<String, Arc<Tool>>);

impl Tools {
    /// `echo`, `count_words`, `fail`, `flaky`, `add`, `upper`, `slow`, `whole`.
    pub(crate) fn standard() -> Self {
        let mut tools = Self::default();
        let text = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
        tools.add("echo", json!({"type": "object"}), None);
        tools.add("upper", text.clone(), None);
        tools.add(
            "count_words",
            json!({"type": "object", "properties": {"text": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["text"], "additionalProperties": false}),
            Some(json!({"type": "object", "properties": {"words": {"type": "integer"}}, "additionalProperties": false})),
        );
        tools.add(
            "add",
            json!({"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}),
            None,
        );
        tools.add(
            "fail",
            json!({"type": "object", "additionalProperties": true, "properties": {"kind": {"type": "string"}}}),
            None,
        );
        tools.add("flaky", json!({"type": "object", "properties": {"failures": {"type": "integer"}}}), None);
        tools.add("slow", json!({"type": "object", "properties": {}}), None);
        tools.add("nothing", json!({"type": "object", "properties": {}, "additionalProperties": false}), None);
        tools
    }

    pub(crate) fn add(&mut self, name: &str, input: Value, output: Option<Value>) {
        let mut manifest = Manifest::new(name, "A tool of the tests", ToolKind::Script);
        manifest.input_schema = Some(input);
        manifest.output_schema = output;
        self.insert(manifest);
    }

    pub(crate) fn add_pipeline(&mut self, name: &str, steps: Value) {
        let mut manifest = Manifest::new(name, "A pipeline of the tests", ToolKind::Pipeline);
        manifest.pipeline_steps = Some(steps);
        self.insert(manifest);
    }

    fn insert(&mut self, manifest: Manifest) {
        let name = manifest.name.clone();
        let tool_name = ToolName::for_existing(&name).expect("a valid name");
        self.0.insert(name, Arc::new(Tool::new(tool_name, Version::FIRST, PathBuf::new(), manifest, "hash".to_owned())));
    }
}

impl Catalogue for Tools {
    fn find(&self, name: &str) -> Option<Arc<Tool>> {
        self.0.get(name).cloned()
    }

    fn closest(&self, name: &str) -> Vec<String> {
        let mut names: Vec<String> =
            self.0.keys().filter(|known| known.starts_with(&name[..name.len().min(3)])).cloned().collect();
        names.sort();
        names
    }
}

/// Carries out the tools of [`Tools::standard`] and counts what happens.
#[derive(Default)]
pub(crate) struct TestHost {
    pub(crate) calls: Mutex<Vec<(String, Value)>>,
    pub(crate) running: AtomicUsize,
    pub(crate) most_running: AtomicUsize,
    pub(crate) given_up: AtomicUsize,
    pub(crate) progress: Mutex<Vec<f64>>,
    flaky_calls: AtomicUsize,
}

/// Counts a call as running for as long as it lives, and as given up if it is dropped before its end.
struct RunningCall<'a>(&'a TestHost, bool);

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        if !self.1 {
            self.0.given_up.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl TestHost {
    pub(crate) fn tools_called(&self) -> Vec<String> {
        self.calls.lock().expect("not poisoned").iter().map(|(name, _)| name.clone()).collect()
    }

    async fn carry_out(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value, ToolError> {
        let text = || arguments.get("text").and_then(Value::as_str).unwrap_or_default();
        match name {
            "echo" => Ok(Value::Object(arguments.clone())),
            "upper" => Ok(json!(text().to_uppercase())),
            "count_words" => Ok(json!({"words": text().split_whitespace().count()})),
            "add" => {
                let number = |name| arguments.get(name).and_then(Value::as_i64).unwrap_or_default();
                // Later items end earlier, so that a result in order shows that order is kept.
                for _ in 0..(20_i64.saturating_sub(number("a"))).max(0) {
                    tokio::task::yield_now().await;
                }
                Ok(json!(number("a") + number("b")))
            }
            "fail" => {
                let kind = match arguments.get("kind").and_then(Value::as_str) {
                    Some("invalid") => ErrorKind::InvalidInput,
                    Some("denied") => ErrorKind::Denied,
                    _ => ErrorKind::Failed,
                };
                Err(ToolError::new(kind, "`fail` ended with exit code 3").with_output("boom").with_hint("Do not call it"))
            }
            "flaky" => {
                let failures = arguments.get("failures").and_then(Value::as_u64).unwrap_or_default() as usize;
                let call = self.flaky_calls.fetch_add(1, Ordering::SeqCst);
                if call < failures {
                    Err(ToolError::failed(format!("`flaky` failed in call {call}")))
                } else {
                    Ok(json!({"calls": call + 1}))
                }
            }
            "slow" => std::future::pending().await,
            "nothing" => Ok(Value::Null),
            other => Err(ToolError::new(ErrorKind::NotFound, format!("There is no tool `{other}`"))),
        }
    }
}

#[async_trait]
impl Host for TestHost {
    async fn call_tool(&self, name: &str, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        self.calls.lock().expect("not poisoned").push((name.to_owned(), Value::Object(arguments.clone())));
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_running.fetch_max(running, Ordering::SeqCst);
        let mut call = RunningCall(self, false);
        let result = self.carry_out(name, &arguments).await;
        call.1 = true;
        result
    }

    async fn list_tools(&self, _query: Option<&str>) -> Result<Value, ToolError> {
        Ok(json!({"tools": []}))
    }

    async fn describe_tool(&self, name: &str) -> Result<Value, ToolError> {
        Ok(json!({"name": name}))
    }

    async fn memory_get(&self, _key: &str) -> Result<Option<Value>, ToolError> {
        Ok(None)
    }

    async fn memory_set(&self, _key: &str, _value: Value, _ttl_seconds: Option<f64>) -> Result<(), ToolError> {
        Ok(())
    }

    async fn memory_list(&self, _prefix: &str) -> Result<Vec<String>, ToolError> {
        Ok(Vec::new())
    }

    async fn memory_delete(&self, _key: &str) -> Result<bool, ToolError> {
        Ok(false)
    }

    async fn list_resources(&self) -> Result<Value, ToolError> {
        Ok(json!({"resources": []}))
    }

    async fn read_resource(&self, uri: &str) -> Result<Value, ToolError> {
        Err(ToolError::new(ErrorKind::NotFound, format!("There is no resource `{uri}`")))
    }

    async fn ask_user(&self, _message: &str, _schema: Value) -> Result<Answer, ToolError> {
        Ok(Answer { action: AnswerAction::Decline, content: None })
    }

    async fn sample(&self, _parameters: Value) -> Result<Value, ToolError> {
        Err(ToolError::failed("Nobody is there"))
    }

    async fn roots(&self) -> Result<Value, ToolError> {
        Ok(json!({"roots": []}))
    }

    fn progress(&self, progress: Progress) {
        self.progress.lock().expect("not poisoned").push(progress.current);
    }

    fn log(&self, _level: LogLevel, _message: &str, _data: Option<Value>) {}
}

/// Runs steps with `input`; the steps must be readable.
pub(crate) async fn run_steps(steps: &Value, input: &Value, host: &TestHost) -> skillz_pipeline::PipelineRun {
    let pipeline = Pipeline::read(steps).unwrap_or_else(|faults| panic!("{faults}"));
    run(&pipeline, input.as_object().cloned().unwrap_or_default(), host).await
}
