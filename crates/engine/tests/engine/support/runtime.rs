//! A runtime whose tools are one line: an instruction and what it works on.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use skillz_json::{Map, Value, json};
use skillz_tool::{
    Draft, Host, LogLevel, Prepared, Progress, SourceCode, Tool, ToolCall, ToolError, ToolKind, ToolOutcome, ToolRuntime,
};
use tokio::sync::Notify;

/// Runs tools that are one line of instructions, and counts what goes on.
#[derive(Default)]
pub(crate) struct FakeRuntime {
    /// Calls that run now.
    pub(crate) running: AtomicUsize,
    /// The most that ever ran at once.
    pub(crate) most_running: AtomicUsize,
    /// Names in the order in which their calls began.
    pub(crate) begun: Mutex<Vec<String>>,
    /// Lets `wait` go on, one call for each permit.
    pub(crate) go: Notify,
    /// What was let go of, as `name hash`.
    pub(crate) retired: Mutex<Vec<String>>,
    /// The last call, as the runtime got it.
    pub(crate) last: Mutex<Option<ToolCall>>,
}

/// Counts a call for as long as it lives, also if it is dropped.
struct Running<'a>(&'a AtomicUsize);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl FakeRuntime {
    /// How many calls run now.
    pub(crate) fn running(&self) -> usize {
        self.running.load(Ordering::SeqCst)
    }

    /// The last call.
    pub(crate) fn last_call(&self) -> ToolCall {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone().expect("there was a call")
    }

    async fn run(&self, call: ToolCall, host: &dyn Host) -> Result<ToolOutcome, ToolError> {
        let line = tokio::fs::read_to_string(call.tool.directory.join("line.txt")).await.map_err(ToolError::internal)?;
        let (instruction, rest) = line.split_once(' ').unwrap_or((&line, ""));
        match instruction {
            "echo" => Ok(ToolOutcome::value(Value::Object(call.arguments))),
            "value" => Ok(ToolOutcome::value(serde_json::from_str(rest).map_err(ToolError::internal)?)),
            "print" => Ok(ToolOutcome::printed(rest)),
            "long" => Ok(ToolOutcome::printed("x".repeat(rest.parse().map_err(ToolError::internal)?))),
            "fail" => Err(ToolError::failed(rest)),
            "panic" => panic!("{rest}"),
            "forever" => std::future::pending().await,
            "wait" => {
                self.go.notified().await;
                Ok(ToolOutcome::value(json!("went on")))
            }
            "call" => host.call_tool(rest, call.arguments).await.map(ToolOutcome::value),
            "list" => host.list_tools((!rest.is_empty()).then_some(rest)).await.map(ToolOutcome::value),
            "describe" => host.describe_tool(rest).await.map(ToolOutcome::value),
            "remember" => {
                host.memory_set("key", json!(rest), None).await?;
                Ok(ToolOutcome::value(json!("remembered")))
            }
            "recall" => Ok(ToolOutcome::value(json!({"value": host.memory_get("key").await?}))),
            "ask" => {
                let answer = host.ask_user(rest, json!({"type": "object"})).await?;
                Ok(ToolOutcome::value(json!({"action": answer.action, "elapsed_ms": call.clock.elapsed().as_millis() as u64})))
            }
            "sample" => host.sample(json!({"prompt": rest})).await.map(ToolOutcome::value),
            "roots" => host.roots().await.map(ToolOutcome::value),
            "resource" => host.read_resource(rest).await.map(ToolOutcome::value),
            "progress" => {
                for current in rest.split(',').filter_map(|number| number.parse().ok()) {
                    host.progress(Progress { current, total: Some(10.0), message: Some("step".to_owned()) });
                }
                Ok(ToolOutcome::value(Value::Null))
            }
            "log" => {
                host.log(LogLevel::Info, rest, None);
                Ok(ToolOutcome::value(Value::Null))
            }
            "both" => {
                let (first, second) = rest.split_once(' ').expect("two names");
                let call = |name| host.call_tool(name, Map::new());
                let (first, second) = tokio::join!(call(first), call(second));
                Ok(ToolOutcome::value(json!([first?, second?])))
            }
            other => Err(ToolError::failed(format!("There is no instruction `{other}`"))),
        }
    }
}

#[async_trait]
impl ToolRuntime for FakeRuntime {
    async fn prepare(&self, draft: Draft, host: Arc<dyn Host>) -> Result<Prepared, ToolError> {
        host.progress(Progress { current: 1.0, total: None, message: Some("preparing".to_owned()) });
        let mut manifest = draft.manifest;
        let path = draft.directory.join("line.txt");
        let line = match draft.source {
            SourceCode::Text(line) => {
                tokio::fs::write(&path, &line).await.map_err(ToolError::internal)?;
                line
            }
            _ => tokio::fs::read_to_string(&path).await.map_err(ToolError::internal)?,
        };
        if line.starts_with("broken") {
            return Err(ToolError::invalid(format!("`{}` does not compile: {line}", manifest.name)));
        }
        if manifest.tool_type == ToolKind::Wasm {
            let module = draft.directory.join(format!("{}.wasm", manifest.name));
            tokio::fs::write(module, "no real module").await.map_err(ToolError::internal)?;
        }
        manifest.entry_file = Some("line.txt".to_owned());
        Ok(Prepared { manifest, size_bytes: line.len() as u64, notes: Vec::new() })
    }

    async fn call(&self, call: ToolCall, host: Arc<dyn Host>) -> Result<ToolOutcome, ToolError> {
        let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
        let _running = Running(&self.running);
        self.most_running.fetch_max(running, Ordering::SeqCst);
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).push(call.tool.name.to_string());
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(call.clone());
        tokio::time::sleep(Duration::ZERO).await;
        self.run(call, host.as_ref()).await
    }

    fn retire(&self, tool: &Tool) {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{} {}", tool.name, tool.hash));
    }
}
