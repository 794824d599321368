//! The handler: one short method for each request of the protocol.

#![expect(deprecated, reason = "older clients still use what the newest protocol has dropped")]

use std::sync::{Arc, LazyLock, OnceLock};

use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CancelTaskParams, CompleteRequestParams, CompleteResult, CustomRequest,
        CustomResult, DiscoverResult, GetPromptRequestParams, GetPromptResponse, GetSkillRequestParams, GetSkillResult,
        GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListSkillsResult, ListToolsResult, PaginatedRequestParams,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource, ServerCapabilities, ServerConfig,
        SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter, Tool as McpTool, UnsubscribeRequestParams,
        UpdateTaskParams,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
    task_manager::TaskManager,
};
use serde_json::json;
use skillz_engine::Engine;
use skillz_tool::{ErrorKind, ToolError};
use tokio_util::task::AbortOnDropHandle;

use crate::{
    calls::form_of,
    completion, convert,
    counters::Counters,
    fixtures,
    host_resources::HostResources,
    listing::{Listing, TTL_MS},
    methods, notify, page,
    parked::ParkingLot,
    prompts, read,
    resources::{self, Address},
    schema_form::Form,
    session::{ClientOrigin, Session},
    skills,
};

/// Resources and prompts on one page.
const PAGE: usize = 250;

static CONFIG: LazyLock<ServerConfig> = LazyLock::new(|| {
    let capabilities = ServerCapabilities::builder()
        .enable_logging()
        .enable_completions()
        .enable_prompts()
        .enable_prompts_list_changed()
        .enable_resources()
        .enable_resources_list_changed()
        .enable_resources_subscribe()
        .enable_tools()
        .enable_tool_list_changed()
        .enable_tasks()
        .enable_skills()
        .build();
    let about = Implementation::new("skillz", env!("CARGO_PKG_VERSION")).with_title("Skillz");
    ServerConfig::new(capabilities).with_server_info(about).with_instructions(include_str!("../docs/instructions.md").trim_end())
});

/// The MCP server. Clones share one session; [`Self::with_session`] makes one for another client.
#[derive(Clone)]
pub struct SkillzServer {
    pub(crate) shared: Arc<Shared>,
    pub(crate) session: Arc<Session>,
}

/// What all sessions share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) parking: ParkingLot,
    pub(crate) tasks: TaskManager,
    pub(crate) counters: Arc<Counters>,
    listing: Listing,
    /// Whether the conformance suite's resources and prompts are there.
    pub(crate) fixtures: bool,
    /// The change counter once the first load was over: nobody was shown anything before.
    loaded_changes: OnceLock<u64>,
}

impl SkillzServer {
    /// A server over an engine, with a session for a local client. Running tools read its resources from now on.
    pub fn new(engine: Engine) -> Self {
        Self::build(engine, false)
    }

    /// A server that has the resources and prompts which the protocol's conformance suite asks for by name, too.
    pub fn for_conformance_suite(engine: Engine) -> Self {
        Self::build(engine, true)
    }

    fn build(engine: Engine, fixtures: bool) -> Self {
        let shared = Arc::new(Shared {
            engine,
            parking: ParkingLot::new(),
            tasks: TaskManager::new(),
            counters: Arc::default(),
            listing: Listing::default(),
            fixtures,
            loaded_changes: OnceLock::new(),
        });
        shared.engine.set_resources(Arc::new(HostResources { server: Arc::downgrade(&shared) }));
        Self { shared, session: Arc::default() }
    }

    /// The same server with a new session, for another client. Cheap.
    #[must_use]
    pub fn with_session(&self, origin: ClientOrigin) -> Self {
        Self { shared: Arc::clone(&self.shared), session: Arc::new(Session::new(origin)) }
    }

    /// Counters for operators, in Prometheus' text format.
    pub fn metrics(&self) -> String {
        self.shared.counters.render(&self.shared.engine)
    }

    /// Waits until the tools on disk are loaded.
    pub(crate) async fn ready(&self) {
        self.shared.loaded().await;
    }

    async fn all_resources(&self) -> Vec<Resource> {
        self.ready().await;
        let catalog = self.shared.engine.catalog();
        let mut all = resources::fixed();
        all.extend(catalog.tools().map(|tool| resources::of_tool(tool)));
        all.extend(skills::all(&self.shared.engine).await.iter().map(skills::resource));
        if self.shared.fixtures {
            all.extend(fixtures::resources());
        }
        all.sort_by(|left, right| left.uri.cmp(&right.uri));
        all
    }
}

impl Shared {
    fn changes(&self) -> u64 {
        *self.engine.changes().borrow()
    }

    /// Waits until the tools on disk are loaded, and gives the change counter of that moment.
    async fn loaded(&self) -> u64 {
        self.engine.ready().await;
        *self.loaded_changes.get_or_init(|| self.changes())
    }
}

impl ServerHandler for SkillzServer {
    fn get_info(&self) -> ServerConfig {
        CONFIG.clone()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let result = self.negotiate_initialize(&request)?;
        self.session.opened(self.shared.changes());
        // What counts from now on is the version agreed on, not the one asked for.
        let mut client = request;
        client.protocol_version = result.protocol_version.clone();
        cx.peer.set_peer_info(client);
        Ok(result)
    }

    async fn discover(&self, _cx: RequestContext<RoleServer>) -> Result<DiscoverResult, ErrorData> {
        let versions = self.supported_protocol_versions().into_owned();
        Ok(DiscoverResult::from_server_info(versions, self.get_info()).with_ttl_ms(TTL_MS))
    }

    async fn on_initialized(&self, cx: NotificationContext<RoleServer>) {
        // The session keeps its follower, so the follower must not keep the session.
        let (shared, session) = (Arc::clone(&self.shared), Arc::downgrade(&self.session));
        let follower = tokio::spawn(async move {
            let loaded = shared.loaded().await;
            notify::follow_session(&shared.engine, session, loaded, cx.peer).await;
        });
        self.session.follow(AbortOnDropHandle::new(follower));
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        cx: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.ready().await;
        let mut page = self.shared.listing.page(&self.shared.engine, form_of(&cx), cursor(request.as_ref()))?;
        for tool in page.tools.iter_mut().filter(|tool| self.shared.fixtures && fixtures::keeps_alternatives(&tool.name)) {
            *tool = self.get_tool(&tool.name).unwrap_or_else(|| tool.clone());
        }
        Ok(page)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.answer_call(request, cx).await
    }

    fn get_tool(&self, name: &str) -> Option<McpTool> {
        self.shared.listing.find(&self.shared.engine, Form::Modern, name)
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let all = self.all_resources().await;
        let page = page::slice(&all, cursor(request.as_ref()), PAGE, |resource| &resource.uri)?;
        let mut result = ListResourcesResult::with_all_items(page.items.to_vec()).with_ttl_ms(TTL_MS);
        result.next_cursor = page.next_cursor;
        Ok(result)
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut all = resources::templates();
        if self.shared.fixtures {
            all.extend(fixtures::templates());
        }
        Ok(ListResourceTemplatesResult::with_all_items(all).with_ttl_ms(TTL_MS))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        cx: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        if let Some(contents) = Some(&request.uri).filter(|_| self.shared.fixtures).and_then(|uri| fixtures::read(uri)) {
            return Ok(ReadResourceResult::new(vec![contents]).into());
        }
        let reading = async {
            self.ready().await;
            read::read(&self.shared.engine, &request.uri).await
        };
        let contents = tokio::select! {
            contents = reading => contents.map_err(|error| resource_error(&error, &request.uri))?,
            () = cx.ct.cancelled() => return Err(ErrorData::internal_error("The request was cancelled", None)),
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn subscribe(&self, request: SubscribeRequestParams, _cx: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.ready().await;
        if Address::parse(&request.uri).is_none() && !(self.shared.fixtures && fixtures::knows(&request.uri)) {
            return Err(unknown_resource(&request.uri));
        }
        let state = resources::state(&self.shared.engine, &request.uri);
        self.session.subscribe(request.uri, state);
        Ok(())
    }

    async fn unsubscribe(&self, request: UnsubscribeRequestParams, _cx: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.session.unsubscribe(&request.uri);
        Ok(())
    }

    /// The SDK acknowledges a stream before it calls [`Self::listen`]; what changes in between is told because
    /// the counter is noted here, before.
    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.session.stream_accepted(self.shared.changes());
        let mut accepted = requested.clone();
        if let Some(uris) = &mut accepted.resource_subscriptions {
            uris.retain(|uri| Address::parse(uri).is_some());
        }
        Some(accepted)
    }

    async fn listen(&self, cx: SubscriptionContext) -> Result<(), ErrorData> {
        let accepted = self.session.stream_opened().unwrap_or_else(|| self.shared.changes());
        let seen = accepted.max(self.shared.loaded().await);
        tokio::select! {
            () = cx.cancelled() => {}
            () = notify::follow_stream(&self.shared.engine, seen, cx.sink()) => {}
        }
        Ok(())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut all = prompts::list(&self.shared.engine).await;
        if self.shared.fixtures {
            all.extend(fixtures::prompts());
            all.sort_by(|left, right| left.name.cmp(&right.name));
        }
        let page = page::slice(&all, cursor(request.as_ref()), PAGE, |prompt| &prompt.name)?;
        let mut result = ListPromptsResult::with_all_items(page.items.to_vec()).with_ttl_ms(TTL_MS);
        result.next_cursor = page.next_cursor;
        Ok(result)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        _cx: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(response) = Some(&request).filter(|_| self.shared.fixtures).and_then(fixtures::get_prompt) {
            return response;
        }
        prompts::get(&self.shared.engine, &request.name, request.arguments.as_ref()).await.map(GetPromptResponse::from)
    }

    async fn list_skills(
        &self,
        request: Option<PaginatedRequestParams>,
        _cx: RequestContext<RoleServer>,
    ) -> Result<ListSkillsResult, ErrorData> {
        let all = skills::all(&self.shared.engine).await;
        let page = page::slice(&all, cursor(request.as_ref()), PAGE, |skill| &skill.name)?;
        let mut items = Vec::with_capacity(page.items.len());
        for skill in page.items {
            items.push(skills::manifest(skill).await.map_err(|error| ErrorData::internal_error(error.text(), None))?);
        }
        let mut result = ListSkillsResult::with_all_items(items).with_ttl_ms(TTL_MS);
        result.next_cursor = page.next_cursor;
        Ok(result)
    }

    async fn get_skill(
        &self,
        request: GetSkillRequestParams,
        _cx: RequestContext<RoleServer>,
    ) -> Result<GetSkillResult, ErrorData> {
        let found = async { skills::manifest(&skills::by_uri(&self.shared.engine, &request.uri).await?).await };
        let skill = found.await.map_err(|error: ToolError| ErrorData::invalid_params(error.text(), None))?;
        Ok(GetSkillResult::new(skill).with_ttl_ms(TTL_MS))
    }

    async fn complete(
        &self,
        request: CompleteRequestParams,
        _cx: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        self.ready().await;
        completion::complete(&self.shared.engine, &request).await
    }

    async fn set_level(&self, request: SetLevelRequestParams, _cx: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.session.set_log_level(convert::log_level(request.level));
        Ok(())
    }

    async fn get_task(&self, request: GetTaskParams, _cx: RequestContext<RoleServer>) -> Result<GetTaskResult, ErrorData> {
        self.shared.tasks.get_task(&request.task_id).map(GetTaskResult::new)
    }

    async fn update_task(&self, request: UpdateTaskParams, _cx: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.shared.tasks.update_task(&request.task_id, request.input_responses)
    }

    async fn cancel_task(&self, request: CancelTaskParams, _cx: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.shared.tasks.cancel_task(&request.task_id)
    }

    async fn on_custom_request(&self, request: CustomRequest, cx: RequestContext<RoleServer>) -> Result<CustomResult, ErrorData> {
        Err(methods::refusal(request, form_of(&cx)))
    }
}

fn cursor(request: Option<&PaginatedRequestParams>) -> Option<&str> {
    request?.cursor.as_deref()
}

fn unknown_resource(uri: &str) -> ErrorData {
    let shown: String = uri.chars().take(200).collect();
    ErrorData::resource_not_found(format!("There is no resource `{shown}`"), Some(json!({"uri": uri})))
}

fn resource_error(error: &ToolError, uri: &str) -> ErrorData {
    match error.kind {
        ErrorKind::NotFound => ErrorData::resource_not_found(error.text(), Some(json!({"uri": uri}))),
        ErrorKind::InvalidInput | ErrorKind::LimitExceeded | ErrorKind::Denied => ErrorData::invalid_params(error.text(), None),
        _ => ErrorData::internal_error(error.text(), None),
    }
}
