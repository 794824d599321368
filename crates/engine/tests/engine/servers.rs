//! What clients may do with imported servers, and what their users are asked.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use skillz_engine::{Policy, PolicyMode, ServerAction, ServerRequest};
use skillz_json::{Value, json};
use skillz_tool::{AnswerAction, ErrorKind, ServerDefinition, Tool, ToolError, UpstreamTools, Upstreams};

use crate::support::{Fixture, client::FakeClient};

/// One imported server, `there`, and what was done.
#[derive(Default)]
struct FakeUpstreams(Mutex<Vec<String>>);

impl FakeUpstreams {
    fn done(&self, what: String) -> Value {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(what);
        json!({})
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Upstreams for FakeUpstreams {
    async fn ready(&self) {}

    fn tools(&self) -> UpstreamTools {
        UpstreamTools::default()
    }

    async fn changed(&self, _seen: u64) -> u64 {
        std::future::pending().await
    }

    async fn add(&self, name: &str, _definition: ServerDefinition, overwrite: bool) -> Result<Value, ToolError> {
        Ok(self.done(format!("add {name} {overwrite}")))
    }

    async fn remove(&self, name: &str) -> Result<Value, ToolError> {
        Ok(self.done(format!("remove {name}")))
    }

    fn list(&self, name: Option<&str>) -> Result<Value, ToolError> {
        match name {
            None | Some("there") => Ok(json!({"servers": []})),
            Some(_) => Err(ToolError::new(ErrorKind::NotFound, "There is no such server")),
        }
    }

    async fn refresh(&self, name: &str) -> Result<Value, ToolError> {
        Ok(self.done(format!("refresh {name}")))
    }

    async fn hide(&self, _tool: &Tool) -> Result<(), ToolError> {
        Ok(())
    }

    fn explain(&self, _tool_name: &str) -> Option<String> {
        None
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }
}

fn request(action: ServerAction, name: &str) -> ServerRequest {
    let url = Some("https://me:pass@example.com/mcp?key=k".to_owned());
    let definition = ServerDefinition { url, ..ServerDefinition::default() };
    ServerRequest { action, name: Some(name.to_owned()), definition, overwrite: true }
}

/// What came of adding, replacing, removing and refreshing: whether each was allowed, and what was done.
async fn tried(mode: Option<PolicyMode>, client: impl Fn() -> FakeClient) -> (Vec<bool>, Vec<String>) {
    let upstreams = Arc::new(FakeUpstreams::default());
    let policy = Policy { servers: mode, ..Policy::default() };
    let fixture =
        Fixture::with_upstreams(Arc::clone(&upstreams) as Arc<dyn Upstreams>, |settings| settings.policy = policy).await;
    let mut allowed = Vec::new();
    for (action, name) in [
        (ServerAction::Add, "new"),
        (ServerAction::Add, "there"),
        (ServerAction::Remove, "there"),
        (ServerAction::Refresh, "there"),
    ] {
        let answer = fixture.engine.import_server(request(action, name), Arc::new(client())).await;
        if let Err(error) = &answer {
            assert_eq!(error.kind, ErrorKind::Denied, "{error}");
            assert!(error.hint.is_some() && error.message.contains(name), "{error}");
        }
        allowed.push(answer.is_ok());
    }
    (allowed, upstreams.all())
}

#[tokio::test]
async fn the_policy_covers_every_change_of_what_is_imported() {
    let everything: Vec<String> = ["add new true", "add there true", "remove there", "refresh there"].map(str::to_owned).to_vec();
    let local = FakeClient::default;
    let remote = || FakeClient { is_remote: true, ..FakeClient::default() };
    let operator = || FakeClient { is_operator: true, ..FakeClient::default() };
    let (deny, declared) = (Some(PolicyMode::Deny), Some(PolicyMode::Declared));
    assert_eq!(tried(None, local).await, (vec![true; 4], everything.clone()));
    assert_eq!(tried(deny, local).await, (vec![false; 4], Vec::new()));
    assert_eq!(tried(deny, remote).await, (vec![false; 4], Vec::new()));
    assert_eq!(tried(deny, operator).await, (vec![true; 4], everything.clone()));
    assert_eq!(tried(None, remote).await, (vec![true, false, false, false], vec!["add new false".to_owned()]));
    assert_eq!(tried(declared, remote).await, (vec![true; 4], everything));
}

#[tokio::test]
async fn the_user_is_told_what_is_reached_and_replaced() {
    let upstreams: Arc<dyn Upstreams> = Arc::new(FakeUpstreams::default());
    let policy = Policy { servers: Some(PolicyMode::Ask), ..Policy::default() };
    let fixture = Fixture::with_upstreams(upstreams, |settings| settings.policy = policy).await;
    let client = Arc::new(FakeClient::answering(AnswerAction::Accept));
    for name in ["new", "there"] {
        let asked = Arc::clone(&client);
        fixture.engine.import_server(request(ServerAction::Add, name), asked).await.expect("the user allows it");
    }
    let question = |name: &str, end: &str| {
        format!("The server `{name}` is to be imported; it connects this server to `https://example.com/mcp`{end}. Allow it?")
    };
    assert_eq!(client.questions(), [question("new", ""), question("there", ", and replaces the server of that name")]);
}
