//! Lets the engine run programs by `skillz-runtime-code`, which does not know the engine.

use std::{path::PathBuf, sync::Arc};

use async_trait::async_trait;
use skillz_engine::{CodeLanguage, CodeRun, CodeRuntime, CodeRuntimeChoice};
use skillz_json::Value;
use skillz_process::Launcher;
use skillz_runtime_code::{CodeRequest, CodeRunner, CodeSettings, Language, Runtime};
use skillz_runtime_script::ScriptRuntime;
use skillz_tool::{Host, ToolError};

/// Programs that call tools. Starts nothing before the first one.
pub(crate) struct Programs(CodeRunner);

impl Programs {
    pub(crate) fn new(binary: PathBuf, launcher: Launcher, scripts: Arc<ScriptRuntime>) -> Self {
        Self(CodeRunner::new(CodeSettings {
            program: binary,
            launcher,
            // A program that waits for its tools keeps its worker, so there are more of these than cores.
            workers: std::thread::available_parallelism().map_or(2, usize::from) * 8,
            scripts,
        }))
    }
}

#[async_trait]
impl CodeRuntime for Programs {
    async fn run(&self, run: CodeRun, host: Arc<dyn Host>) -> Result<Value, ToolError> {
        let request = CodeRequest {
            code: run.code,
            language: language(run.language),
            runtime: runtime(run.runtime),
            dependencies: run.dependencies,
            grants: run.grants,
            roots: run.roots,
            tools: run.tools,
            excluded: run.excluded,
            limits: run.limits,
            clock: run.clock,
        };
        Ok(self.0.run(request, host).await?.into())
    }
}

fn language(language: CodeLanguage) -> Language {
    match language {
        CodeLanguage::Python => Language::Python,
        CodeLanguage::JavaScript => Language::JavaScript,
        CodeLanguage::TypeScript => Language::TypeScript,
    }
}

fn runtime(choice: CodeRuntimeChoice) -> Runtime {
    match choice {
        CodeRuntimeChoice::Auto => Runtime::Auto,
        CodeRuntimeChoice::Embedded => Runtime::Embedded,
        CodeRuntimeChoice::Process => Runtime::Process,
    }
}
