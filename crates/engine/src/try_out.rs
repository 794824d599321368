//! `test_tool`: the stored examples of one tool, or of all.

use std::sync::Arc;

use skillz_json::{Map, Value, json};
use skillz_tool::ToolError;

use crate::{ClientPort, ExampleCounts, callable::Callable, engine::Engine, tree::CallTree};

impl Engine {
    /// Runs the stored examples of one tool, or of all: `{passed, failed, failures?}` with `tool_name` for one,
    /// with `tools` for all.
    pub async fn test(&self, name: Option<&str>, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
        let tree = Arc::new(CallTree::new(client));
        match name {
            Some(name) => {
                let callable = self.find(name, None).await?;
                let counts = self.try_examples(&callable, &tree).await;
                Ok(one(&callable, &counts))
            }
            None => Ok(self.test_all(&tree).await),
        }
    }

    async fn test_all(&self, tree: &Arc<CallTree>) -> Value {
        let view = self.view();
        let (mut passed, mut failed, mut untested) = (0, 0, Vec::new());
        let mut tools = Vec::new();
        for tool in view.offered() {
            let Some(callable) = view.callables.get(&tool.name) else { continue };
            if tool.manifest.examples.is_empty() {
                untested.push(tool.name.as_str());
                continue;
            }
            let counts = self.try_examples(callable, tree).await;
            passed += counts.passed;
            failed += counts.failed;
            tools.push(one(callable, &counts));
        }
        json!({"passed": passed, "failed": failed, "tools": tools, "without_examples": untested})
    }
}

fn one(callable: &Callable, counts: &ExampleCounts) -> Value {
    let mut report = Map::from_iter([
        ("tool_name".to_owned(), json!(callable.tool.name.as_str())),
        ("version".to_owned(), json!(callable.tool.version)),
        ("passed".to_owned(), json!(counts.passed)),
        ("failed".to_owned(), json!(counts.failed)),
    ]);
    if !counts.failures.is_empty() {
        report.insert("failures".to_owned(), json!(counts.failures));
    }
    if counts.passed + counts.failed == 0 {
        report.insert("note".to_owned(), json!("The tool has no examples; publish it with `examples` to have it tested"));
    }
    Value::Object(report)
}
