//! `skillz test [NAME]`

use clap::Args;
use skillz_json::Value;

use crate::{
    context::Context,
    report::{Failure, Status},
};

#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The tool; all tools by default.
    name: Option<String>,
}

pub(crate) fn run(arguments: &TestArguments, context: &Context) -> anyhow::Result<()> {
    context.with_engine(|engine| async move {
        let report = engine.test(arguments.name.as_deref(), context.client()).await.map_err(Failure::from)?;
        context.printer.print(&report, text)?;
        match failures(&report) {
            0 => Ok(()),
            1 => Err(Failure::new(Status::ToolFailed, "1 example failed").into()),
            many => Err(Failure::new(Status::ToolFailed, format!("{many} examples failed")).into()),
        }
    })
}

fn failures(report: &Value) -> u64 {
    report.get("failed").and_then(Value::as_u64).unwrap_or(0)
}

fn text(report: &Value) -> String {
    let passed = report.get("passed").and_then(Value::as_u64).unwrap_or(0);
    let mut text = String::new();
    if failures(report) > 0 {
        text.push_str(&serde_json::to_string_pretty(report).unwrap_or_default());
        text.push('\n');
    }
    text.push_str(&format!("{passed} passed, {} failed\n", failures(report)));
    text
}
