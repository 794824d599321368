//! Permissions: what a manifest asks for, and what comes of it.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use skillz_engine::{CallReply, EngineSettings, NoClient, Policy, PolicyMode};
use skillz_json::{Value, json};
use skillz_tool::{AnswerAction, ErrorKind, FolderMode, NetworkPermission};

use crate::support::{Fixture, client::FakeClient};

async fn asking(permissions: Value, change: impl FnOnce(&mut EngineSettings)) -> Fixture {
    let fixture = Fixture::with(change).await;
    fixture.publish_with("probe", "echo", json!({"permissions": permissions})).await.expect("published");
    fixture
}

fn granted_folders(fixture: &Fixture) -> Vec<(String, FolderMode)> {
    let grants = fixture.runtime.last_call().grants;
    grants.folders.iter().map(|folder| (folder.path.to_string_lossy().into_owned(), folder.mode)).collect()
}

fn refusal(reply: CallReply) -> String {
    assert_eq!(reply.failure.as_ref().map(|error| error.kind), Some(ErrorKind::Denied), "{reply:?}");
    reply.text()
}

#[tokio::test]
async fn variables_are_given_by_name_and_never_the_servers_own_tokens() {
    let environment: BTreeMap<String, String> =
        [("API_KEY", "1"), ("SKILLZ_X", "2"), ("SKILLZ_AUTH_TOKEN", "3"), ("SKILLZ_MEMORY_TOKEN", "4"), ("OTHER", "5")]
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
    for (forward_all, expected) in [(false, vec!["API_KEY=1"]), (true, vec!["API_KEY=1", "SKILLZ_X=2"])] {
        let fixture = asking(json!({"env": ["API_KEY", "NOT_SET"]}), |settings| {
            settings.environment = environment.clone();
            settings.forward_all = forward_all;
        })
        .await;
        fixture.call("probe", json!({})).await;
        let given = fixture.runtime.last_call().grants.environment;
        let given: Vec<String> = given.iter().map(|variable| format!("{}={}", variable.name, variable.value)).collect();
        assert_eq!(given, expected);
    }
}

#[tokio::test]
async fn a_failure_names_variables_that_are_not_set() {
    let fixture = Fixture::new().await;
    fixture.publish_with("probe", "fail No key", json!({"permissions": {"env": ["API_KEY"]}})).await.expect("published");
    let text = fixture.call("probe", json!({})).await.text();
    assert!(text.contains("asks for `API_KEY` in its environment, which the server's own environment does not have"), "{text}");
}

#[tokio::test]
async fn the_network_is_given_as_declared_denied_or_opened_for_all() {
    let denied = Policy { network: PolicyMode::Deny, ..Policy::default() };
    let fixture = asking(json!({"network": ["api.example.com"]}), |_| ()).await;
    fixture.call("probe", json!({})).await;
    assert!(fixture.runtime.last_call().grants.network.allows("api.example.com", 443));
    assert!(!fixture.runtime.last_call().grants.network.allows("example.com", 443));

    let fixture = asking(json!({"network": true}), |settings| settings.policy = denied).await;
    let text = refusal(fixture.call("probe", json!({})).await);
    assert!(
        text.starts_with("`probe` asks for the network, and the operator's policy (`[policy] network = \"deny\"`) refuses that"),
        "{text}"
    );

    let fixture = asking(json!({}), |settings| {
        settings.policy = denied;
        settings.network_for_all = true;
    })
    .await;
    fixture.call("probe", json!({})).await;
    assert_eq!(fixture.runtime.last_call().grants.network, NetworkPermission::All(true));
}

#[tokio::test]
async fn folders_within_the_roots_are_given_and_missing_ones_left_out() {
    let root = tempfile::tempdir().expect("a folder");
    let real = root.path().canonicalize().expect("there");
    fs::create_dir(real.join("data")).expect("made");
    let fixture = asking(
        json!({"fs": [{"path": "$ROOT/data"}, {"path": "$ROOT/missing"}, {"path": real.join("data"), "mode": "rw"}]}),
        |settings| settings.roots = vec![real.clone()],
    )
    .await;
    assert!(!fixture.call("probe", json!({})).await.is_error);
    assert_eq!(granted_folders(&fixture), [(real.join("data").to_string_lossy().into_owned(), FolderMode::Rw)]);
}

#[tokio::test]
async fn the_own_data_folder_needs_no_consent_and_lies_in_the_home() {
    let fixture = asking(json!({"fs": [{"path": "$DATA", "mode": "rw"}]}), |settings| {
        settings.policy.folders = Some(PolicyMode::Deny);
    })
    .await;
    assert!(!fixture.call("probe", json!({})).await.is_error);
    let data = fixture.home().join("data/probe").canonicalize().expect("it was made");
    assert_eq!(granted_folders(&fixture).first(), Some(&(data.to_string_lossy().into_owned(), FolderMode::Rw)));
    assert_eq!(fixture.runtime.last_call().context.data_directory.canonicalize().expect("there"), data);
}

#[tokio::test]
async fn clients_are_asked_for_roots_only_by_tools_that_name_them() {
    let root = tempfile::tempdir().expect("a folder");
    let real = root.path().canonicalize().expect("there");
    let fixture = asking(json!({"fs": [{"path": "$ROOT"}]}), |_| ()).await;
    fixture.publish("plain", "echo").await;
    let client = Arc::new(FakeClient { roots: Some(vec![real.clone()]), ..FakeClient::default() });
    fixture.call_by("plain", json!({}), client.clone()).await;
    assert_eq!(client.asked_for_roots.load(std::sync::atomic::Ordering::Relaxed), 0);
    fixture.call_by("probe", json!({}), client.clone()).await;
    assert_eq!(client.asked_for_roots.load(std::sync::atomic::Ordering::Relaxed), 1);
    assert_eq!(granted_folders(&fixture), [(real.to_string_lossy().into_owned(), FolderMode::Ro)]);
    assert_eq!(fixture.runtime.last_call().context.roots, [real]);
}

/// A folder with a home in it, and links to and around it.
fn laid_out(folder: &Path) {
    fs::create_dir_all(folder.join("home/tools/x")).expect("made");
    fs::create_dir_all(folder.join("project")).expect("made");
    std::os::unix::fs::symlink(folder.join("home"), folder.join("project/link")).expect("linked");
    std::os::unix::fs::symlink(folder, folder.join("project/up")).expect("linked");
}

#[tokio::test]
async fn the_servers_home_is_never_given() {
    for path in ["home", "home/tools", "home/tools/x", "", "project/link", "project/link/tools", "project/up"] {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().canonicalize().expect("there");
        laid_out(&base);
        let fixture = Fixture::in_folder(folder, |settings| {
            settings.roots = vec![base.clone()];
            settings.policy.folders = Some(PolicyMode::Declared);
        })
        .await;
        for asked in [json!(base.join(path)), json!(format!("$ROOT/{path}"))] {
            let permissions = json!({"permissions": {"fs": [{"path": asked}]}});
            fixture.publish_with("probe", "echo", permissions).await.expect("published");
            let text = refusal(fixture.call("probe", json!({})).await);
            assert!(text.contains("is, holds or lies in the server's data folder"), "{asked}: {text}");
        }
    }
}

#[tokio::test]
async fn the_folder_of_all_tools_is_never_writable_wherever_it_lies() {
    let root = tempfile::tempdir().expect("a folder");
    let real = root.path().canonicalize().expect("there");
    let fixture = Fixture::with(|settings| {
        settings.roots = vec![real.clone()];
        settings.tools_directory = real.join("tools");
    })
    .await;
    fixture.publish_with("reader", "echo", json!({"permissions": {"fs": [{"path": "$ROOT"}]}})).await.expect("published");
    fixture
        .publish_with("writer", "echo", json!({"permissions": {"fs": [{"path": "$ROOT", "mode": "rw"}]}}))
        .await
        .expect("published");
    assert!(!fixture.call("reader", json!({})).await.is_error);
    assert!(refusal(fixture.call("writer", json!({})).await).contains("the folder of all tools"));
}

#[tokio::test]
async fn folders_outside_the_roots_need_the_users_consent_once() {
    let outside = tempfile::tempdir().expect("a folder");
    let real = outside.path().canonicalize().expect("there");
    let fixture = asking(json!({"fs": [{"path": real}]}), |_| ()).await;
    let text = refusal(fixture.call_by("probe", json!({}), Arc::new(NoClient)).await);
    assert!(text.contains("this client cannot ask the user") && text.contains("SKILLZ_ROOTS"), "{text}");

    let client = Arc::new(FakeClient::answering(AnswerAction::Accept));
    let (one, two) =
        tokio::join!(fixture.call_by("probe", json!({}), client.clone()), fixture.call_by("probe", json!({}), client.clone()));
    assert!(!one.is_error && !two.is_error);
    assert_eq!(
        client.questions(),
        [format!("The tool `probe` (version 1.0.0) asks for the folder `{}` to read. Allow it?", real.display())]
    );
    assert!(!fixture.call_by("probe", json!({}), Arc::new(NoClient)).await.is_error, "it is remembered");

    let Fixture { folder, engine, .. } = fixture;
    drop(engine);
    let fixture = Fixture::in_folder(folder, |_| ()).await;
    assert!(!fixture.call("probe", json!({})).await.is_error, "also by another server");
    fixture
        .publish_with("probe", "echo", json!({"permissions": {"fs": [{"path": real}]}, "description": "Another version"}))
        .await
        .expect("published");
    assert!(fixture.call("probe", json!({})).await.is_error, "another version is asked for anew");
}

#[tokio::test]
async fn whoever_declines_is_not_asked_again_and_whoever_closes_is() {
    let ask = Policy { network: PolicyMode::Ask, environment: PolicyMode::Ask, folders: None, servers: None };
    for (answer, asked) in [(AnswerAction::Decline, 1), (AnswerAction::Cancel, 2)] {
        let fixture = asking(json!({"network": true, "env": ["KEY"]}), |settings| settings.policy = ask).await;
        let client = Arc::new(FakeClient::answering(answer));
        for _ in 0..2 {
            let text = refusal(fixture.call_by("probe", json!({}), client.clone()).await);
            assert!(text.contains("the value of the environment variable `KEY`; the whole network"), "{text}");
        }
        assert_eq!(client.questions().len(), asked, "{answer:?}");
    }
}

#[tokio::test]
async fn a_tool_cannot_borrow_anothers_rights() {
    let denied = Policy { network: PolicyMode::Deny, ..Policy::default() };
    let fixture = asking(json!({"network": true}), |settings| settings.policy = denied).await;
    fixture.publish("outer", "call probe").await;
    assert!(fixture.call("outer", json!({})).await.text().contains("`probe` asks for the network"));
    fixture.publish_with("caller", "call plain", json!({"permissions": {"env": ["KEY"]}})).await.expect("published");
    fixture.publish("plain", "echo").await;
    fixture.call("caller", json!({})).await;
    assert!(fixture.runtime.last_call().grants.environment.is_empty());
}

#[tokio::test]
async fn consent_given_for_the_examples_counts_for_the_published_version() {
    let outside = tempfile::tempdir().expect("a folder");
    let real = outside.path().canonicalize().expect("there");
    let fixture = Fixture::new().await;
    let client = Arc::new(FakeClient::answering(AnswerAction::Accept));
    let fields = json!({"permissions": {"fs": [{"path": real}]}, "examples": [{"result": {}}]});
    let request = skillz_engine::PublishRequest { client: client.clone(), ..crate::support::request("probe", "echo", fields) };
    fixture.engine.publish(request).await.expect("published");
    assert!(!fixture.call("probe", json!({})).await.is_error);
    assert_eq!(client.questions().len(), 1);
}
