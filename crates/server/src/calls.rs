//! `tools/call`, in both kinds of protocol: with questions as requests of the server, and as rounds of input.

use std::{
    hash::{BuildHasher, RandomState},
    sync::{Arc, LazyLock},
    time::Duration,
};

use rmcp::{
    ErrorData, RoleServer,
    model::{CallToolRequestParams, CallToolResponse, CreateTaskResult, InputRequiredResult},
    service::RequestContext,
    task_manager::TaskOptions,
};
use skillz_engine::{CallFailure, CallRequest, Engine};
use skillz_json::{Value, wire};
use skillz_tool::ToolError;

use crate::{
    builtin::{self, BuiltinReply},
    convert, fixtures,
    handler::SkillzServer,
    outlet::Outlet,
    parked::CallIdentity,
    port::{CallPort, ClientProfile},
    question::Abilities,
    running::{Ending, Running, Turn},
    schema_form::Form,
    session::ClientOrigin,
};

/// Tells the arguments of parked calls apart.
static ARGUMENT_HASHES: LazyLock<RandomState> = LazyLock::new(RandomState::new);
/// After how long a call becomes a task, where the client knows tasks.
const TASK_AFTER: Duration = Duration::from_secs(5);
/// A tool that asks for more time than this says that it takes long.
const USUAL_TIMEOUT_MS: u64 = 30_000;
/// How long a task and its result are kept.
const TASK_TTL_MS: u64 = 3_600_000;
/// How often a client had best look after a task.
const TASK_POLL_MS: u64 = 500;

/// Which kind of protocol a request belongs to.
pub(crate) fn form_of(cx: &RequestContext<RoleServer>) -> Form {
    match cx.protocol_version() {
        Some(version) if !version.has_initialize() => Form::Modern,
        _ => Form::Legacy,
    }
}

impl SkillzServer {
    pub(crate) async fn answer_call(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let outlet = Outlet::new(cx.peer.clone(), cx.meta.get_progress_token());
        let cancelled = cx.ct.clone();
        let answer = async {
            match form_of(&cx) {
                Form::Legacy => self.start(request, &cx, Form::Legacy).finish(outlet).await.map(CallToolResponse::from),
                Form::Modern => self.answer_round(request, &cx, outlet).await,
            }
        };
        tokio::select! {
            biased;
            // Dropping the answer stops the work. Nobody reads this error.
            () = cancelled.cancelled() => Err(ErrorData::internal_error("The call was cancelled", None)),
            answer = answer => answer,
        }
    }

    /// One round of a call in the stateless protocol: from the start, or from where it was parked.
    async fn answer_round(
        &self,
        mut request: CallToolRequestParams,
        cx: &RequestContext<RoleServer>,
        mut outlet: Outlet,
    ) -> Result<CallToolResponse, ErrorData> {
        let answers = request.input_responses.take().unwrap_or_default();
        let arguments = ARGUMENT_HASHES.hash_one(&request.arguments);
        let identity = CallIdentity { caller: self.caller(cx), tool_name: request.name.to_string(), arguments };
        let knows_tasks = cx.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
        if let Some(refusal) =
            Some(&request).filter(|_| self.shared.fixtures).and_then(|request| fixtures::refusal(&request.name, knows_tasks))
        {
            return Err(refusal);
        }
        let patience = knows_tasks.then(|| self.patience(&request.name));
        let mut running = match request.request_state.take() {
            Some(ticket) => self.shared.parking.resume(&ticket, &identity)?,
            None => self.start(request, cx, Form::Modern),
        };
        running.answer(answers);
        match running.advance(&mut outlet, patience).await {
            Turn::Finished(ending) => ending.map(CallToolResponse::from),
            Turn::NeedsInput(requests) => {
                let ticket = self.shared.parking.park(running, identity);
                Ok(InputRequiredResult::new(Some(requests), Some(ticket)).into())
            }
            Turn::TakesLong => {
                let options = TaskOptions::new().with_ttl_ms(TASK_TTL_MS).with_poll_interval_ms(TASK_POLL_MS);
                let task = self.shared.tasks.spawn(options, |task| Box::pin(running.finish_as_task(task)));
                Ok(CreateTaskResult::new(task).into())
            }
        }
    }

    fn start(&self, request: CallToolRequestParams, cx: &RequestContext<RoleServer>, form: Form) -> Running {
        let server = self.clone();
        let profile = self.profile(cx, form);
        Running::start(profile, move |port| async move {
            let counted = server.shared.counters.call();
            server.ready().await;
            let fixture = server.shared.fixtures.then(|| request.name.clone());
            let mut ending = work(server.shared.engine.clone(), request, port, form).await;
            if let Some(name) = fixture {
                ending = fixtures::ending(&name, ending);
            }
            counted.ended(&ending);
            ending
        })
    }

    /// How long a client that knows tasks waits before the call becomes one. Not at all for tools that ask for more
    /// time than usual.
    fn patience(&self, tool_name: &str) -> Duration {
        let asked = self.shared.engine.catalog().get(tool_name).and_then(|tool| tool.manifest.limits.timeout_ms);
        if asked.is_some_and(|timeout_ms| timeout_ms > USUAL_TIMEOUT_MS) { Duration::ZERO } else { TASK_AFTER }
    }

    fn profile(&self, cx: &RequestContext<RoleServer>, form: Form) -> ClientProfile {
        let log_level = match form {
            Form::Legacy => Some(self.session.log_level()),
            Form::Modern => cx.meta.log_level().map(convert::log_level),
        };
        ClientProfile {
            abilities: Abilities::of(cx.client_capabilities().as_ref()),
            progress_token: cx.meta.get_progress_token().map(|token| token.0.into_json_value().into()),
            log_level,
            remote: self.session.origin == ClientOrigin::Remote,
            session: Some(self.session.number),
        }
    }

    /// Who calls, as far as that is known.
    fn caller(&self, cx: &RequestContext<RoleServer>) -> String {
        let client = cx.client_info().map(|client| format!("{} {}", client.name, client.version)).unwrap_or_default();
        format!("{:?} {client}", self.session.origin)
    }
}

/// Calls a built-in or a tool.
async fn work(engine: Engine, request: CallToolRequestParams, port: Arc<CallPort>, form: Form) -> Ending {
    let CallToolRequestParams { name, arguments, .. } = request;
    if let Some(faults) = arguments.as_ref().and_then(wire::refusal) {
        let message = format!("The arguments of `{name}` cannot be taken as they stand:\n- {faults}");
        return Ok(convert::error_result(&ToolError::invalid(message).with_hint("Send each member once, and shorter numbers")));
    }
    let arguments = arguments.map(wire::leave_members);
    if let Some(builtin) = builtin::find(&name) {
        return Ok(match builtin.call(engine.clone(), arguments, port).await {
            Ok(BuiltinReply::Value(value)) => convert::call_result(engine.reply_with(builtin.name, value).await, form),
            Ok(BuiltinReply::Tool(reply)) => convert::call_result(*reply, form),
            Err(error) => convert::error_result(&error),
        });
    }
    let request = CallRequest {
        tool_name: name.into_owned(),
        version: None,
        arguments: arguments.map_or(Value::Null, Value::Object),
        client: port,
    };
    match engine.call(request).await {
        Ok(reply) => Ok(convert::call_result(reply, form)),
        Err(CallFailure::UnknownTool { message }) => Err(ErrorData::invalid_params(message, None)),
    }
}
