//! What a running tool may ask of the server.

use std::{sync::Arc, time::Duration};

use crate::support::{Fixture, client::FakeClient};
use async_trait::async_trait;
use skillz_engine::{CallReply, ResourceSource};
use skillz_json::{Value, json};
use skillz_tool::{AnswerAction, ToolError};

fn value(reply: CallReply) -> Value {
    assert!(!reply.is_error, "{reply:?}");
    reply.structured_content.clone().unwrap_or_else(|| json!(reply.text()))
}

#[tokio::test]
async fn memory_is_each_tools_own() {
    let fixture = Fixture::new().await;
    fixture.publish("mine", "remember treasure").await;
    fixture.call("mine", json!({})).await;
    fixture.publish("mine", "recall").await;
    fixture.publish("other", "recall").await;
    fixture.publish("outer", "call mine").await;
    assert_eq!(value(fixture.call("mine", json!({})).await), json!({"value": "treasure"}));
    assert_eq!(value(fixture.call("other", json!({})).await), json!({"value": null}));
    assert_eq!(value(fixture.call("outer", json!({})).await), json!({"value": "treasure"}), "an inner call is that tool's own");
}

#[tokio::test]
async fn questions_stop_the_clocks_of_the_whole_chain() {
    let fixture = Fixture::new().await;
    let limits = json!({"limits": {"timeout_ms": 200}});
    fixture.publish_with("inner", "ask Really?", limits.clone()).await.expect("published");
    fixture.publish_with("outer", "call inner", limits).await.expect("published");
    let client = FakeClient { thinking: Duration::from_millis(600), ..FakeClient::answering(AnswerAction::Accept) };
    let answer = value(fixture.call_by("outer", json!({}), Arc::new(client)).await);
    assert_eq!(answer["action"], "accept");
    assert!(answer["elapsed_ms"].as_u64().expect("a number") < 200, "{answer}");
}

#[tokio::test]
async fn clients_that_cannot_are_named_at_once() {
    let fixture = Fixture::new().await;
    fixture.publish("asker", "ask Really?").await;
    fixture.publish("sampler", "sample a poem").await;
    assert!(fixture.call("asker", json!({})).await.text().contains("This client cannot ask the user (it has no elicitation)"));
    assert!(fixture.call("sampler", json!({})).await.text().contains("(it has no sampling)"));
    let client = FakeClient { sampling: true, ..FakeClient::default() };
    let reply = fixture.call_by("sampler", json!({}), Arc::new(client)).await;
    assert_eq!(value(reply), json!({"content": {"prompt": "a poem"}}));
}

#[tokio::test]
async fn progress_always_grows_and_needs_a_token() {
    let fixture = Fixture::new().await;
    fixture.publish("inner", "progress 7,9").await;
    fixture.publish("steps", "progress 1,1,0.5,3").await;
    fixture.publish("both_of_them", "both inner steps").await;
    let client = Arc::new(FakeClient::default());
    fixture.call_by("steps", json!({}), client.clone()).await;
    let told: Vec<f64> = client.progress.lock().expect("whole").iter().map(|progress| progress.current).collect();
    assert_eq!(told.len(), 4);
    assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
    assert_eq!((told[0], told[3]), (1.0, 3.0));

    let client = Arc::new(FakeClient::default());
    fixture.call_by("both_of_them", json!({}), client.clone()).await;
    let told = client.progress.lock().expect("whole").clone();
    assert!(told.windows(2).all(|pair| pair[0].current < pair[1].current), "{told:?}");
    assert!(told.iter().all(|progress| progress.total.is_none()), "inner calls count for themselves");

    let silent = Arc::new(FakeClient { wants_progress: false, ..FakeClient::default() });
    fixture.call_by("steps", json!({}), silent.clone()).await;
    assert!(silent.progress.lock().expect("whole").is_empty());
}

#[tokio::test]
async fn log_messages_carry_the_tools_name_and_no_secret() {
    let environment = std::collections::BTreeMap::from([("API_KEY".to_owned(), "very-secret-value".to_owned())]);
    let fixture = Fixture::with(|settings| settings.environment = environment).await;
    fixture
        .publish_with("talker", "log the key is very-secret-value", json!({"permissions": {"env": ["API_KEY"]}}))
        .await
        .expect("published");
    fixture
        .publish_with("loser", "fail Bad key very-secret-value", json!({"permissions": {"env": ["API_KEY"]}}))
        .await
        .expect("published");
    let client = Arc::new(FakeClient::default());
    fixture.call_by("talker", json!({}), client.clone()).await;
    assert_eq!(client.logs.lock().expect("whole").clone(), [("talker".to_owned(), "the key is <API_KEY>".to_owned())]);
    fixture.call("loser", json!({})).await;
    assert_eq!(fixture.history.only("loser").error.as_deref(), Some("Bad key <API_KEY>"));
}

struct Resources;

#[async_trait]
impl ResourceSource for Resources {
    fn list(&self) -> Value {
        json!({"resources": [{"uri": "skillz://guide"}, {"uri": "skillz://history"}]})
    }

    async fn read(&self, uri: &str) -> Result<Value, ToolError> {
        Ok(json!({"contents": [{"uri": uri, "text": "text"}]}))
    }
}

#[tokio::test]
async fn resources_are_read_but_never_results_or_history() {
    let fixture = Fixture::new().await;
    fixture.publish("reader", "resource skillz://guide").await;
    assert!(fixture.call("reader", json!({})).await.is_error, "there are none yet");
    fixture.engine.set_resources(Arc::new(Resources));
    assert_eq!(value(fixture.call("reader", json!({})).await)["contents"][0]["text"], "text");
    for uri in ["skillz://results/0123", "skillz://history", "SKILLZ://%68istory"] {
        fixture.publish("reader", &format!("resource {uri}")).await;
        assert!(fixture.call("reader", json!({})).await.text().contains("belongs to the client"), "{uri}");
    }
}

#[tokio::test]
async fn tools_find_and_describe_tools() {
    let fixture = Fixture::new().await;
    let schema = json!({"description": "Converts money between currencies", "input_schema": {"type": "object", "required": ["amount"], "properties": {"amount": {"type": "number"}}}});
    fixture.publish_with("currency_convert", "echo", schema).await.expect("published");
    let fields = json!({"description": "Looks for tools"});
    fixture.publish_with("finder", "list how much is 5 dollars in euros", fields).await.expect("published");
    fixture.publish("lister", "list").await;
    fixture.publish("describer", "describe currency_convert").await;
    let found = value(fixture.call("finder", json!({})).await);
    assert_eq!(found["tools"][0]["name"], "currency_convert");
    assert_eq!(found["tools"][0]["input_schema"]["required"], json!(["amount"]));
    assert_eq!(value(fixture.call("lister", json!({})).await)["tools"].as_array().map(Vec::len), Some(4));
    let described = value(fixture.call("describer", json!({})).await);
    assert_eq!(described["python"], "currency_convert(amount: float)  # Converts money between currencies");
    assert_eq!(described["versions"], json!(["1.0.0"]));
}

#[tokio::test]
async fn roots_are_the_clients_else_the_operators() {
    let fixture = Fixture::with(|settings| settings.roots = vec!["/srv/work".into()]).await;
    fixture.publish("rooted", "roots").await;
    assert_eq!(value(fixture.call("rooted", json!({})).await), json!({"roots": [{"uri": "file:///srv/work", "name": "work"}]}));
    let client = FakeClient { roots: Some(vec!["/home/me".into()]), ..FakeClient::default() };
    assert_eq!(value(fixture.call_by("rooted", json!({}), Arc::new(client)).await)["roots"][0]["uri"], "file:///home/me");
    let remote = FakeClient { roots: Some(vec!["/etc".into()]), is_remote: true, ..FakeClient::default() };
    assert_eq!(value(fixture.call_by("rooted", json!({}), Arc::new(remote)).await), json!({"roots": []}));
}
