//! Programs in the machine's own python3 or node: what serves function scripts runs them.

use std::sync::Arc;

use skillz_json::{Map, Value, json};
use skillz_runtime_script::{CheckedLanguage, Program, ProgramEnd, ProgramLanguage};
use skillz_tool::{CallContext, ErrorKind, ToolError};

use crate::{
    hints,
    host::ProgramHost,
    message::{PreparedProgram, TOOL_ERROR},
    names::Names,
    outcome::{CodeFailure, CodeResult, out_of_memory, printed_too_much, timed_out},
    request::{CodeRequest, CodeSettings, Language},
};

/// What the runtime of scripts calls a program.
const ITS_NAME: &str = "`execute_code` ";

/// The interpreter of a language.
pub(crate) fn interpreter(language: Language) -> ProgramLanguage {
    match language {
        Language::Python => ProgramLanguage::Python,
        Language::JavaScript | Language::TypeScript => ProgramLanguage::JavaScript,
    }
}

/// Runs a program, which was prepared where it is none of Python's.
pub(crate) async fn run(
    settings: &CodeSettings,
    language: CheckedLanguage,
    request: CodeRequest,
    names: Names,
    prepared: Option<PreparedProgram>,
    host: Arc<ProgramHost>,
) -> Result<CodeResult, CodeFailure> {
    let program = Program {
        language,
        arguments: arguments(&request.code, prepared, &names),
        dependencies: request.dependencies.clone(),
        limits: request.limits.clone(),
        clock: request.clock.clone(),
        grants: request.grants.clone(),
        context: CallContext { roots: request.roots.clone(), ..CallContext::default() },
    };
    let ProgramEnd { printed, outcome } = settings.scripts.run_program(program, Arc::clone(&host) as _).await;
    let (stdout, calls) = (printed, host.calls());
    match outcome {
        Ok(result) => Ok(CodeResult { result, stdout, calls, is_embedded: false }),
        Err(error) => {
            let error = in_its_words(error, &request, &host.late());
            Err(CodeFailure { error, traceback: None, stdout, calls })
        }
    }
}

fn arguments(code: &str, prepared: Option<PreparedProgram>, names: &Names) -> Map<String, Value> {
    let mut arguments = match prepared {
        None => Map::from_iter([("code".to_owned(), json!(code))]),
        Some(PreparedProgram { text, header, lines, is_module }) => Map::from_iter([
            ("code".to_owned(), json!(text)),
            ("header".to_owned(), json!(header)),
            ("lines".to_owned(), json!(lines)),
            ("is_module".to_owned(), json!(is_module)),
            ("source".to_owned(), json!(code)),
        ]),
    };
    arguments.insert("tools".to_owned(), names.parameters());
    arguments
}

/// A failure of the program, not of a tool.
fn in_its_words(mut error: ToolError, request: &CodeRequest, late: &[String]) -> ToolError {
    let Some(what) = error.message.strip_prefix(ITS_NAME).map(str::to_owned) else { return error };
    let output = error.output.take();
    match error.kind {
        ErrorKind::TimedOut => error = timed_out(request, late),
        ErrorKind::LimitExceeded if what.contains("MiB of memory") => error = out_of_memory(request),
        ErrorKind::LimitExceeded if what.contains("printed more than") => error = printed_too_much(request),
        _ => {
            let fault = what.strip_prefix("failed: ").unwrap_or_default();
            error.message = match fault {
                fault if fault.starts_with("does not compile") => format!("The program {fault}"),
                fault if fault.starts_with("The program") => fault.to_owned(),
                "" => format!("The program {what}"),
                fault => format!("The program failed: {fault}"),
            };
            if !fault.starts_with(TOOL_ERROR) {
                error.hint = hints::for_name(fault, request).or(error.hint);
            }
        }
    }
    ToolError { output, ..error }
}
