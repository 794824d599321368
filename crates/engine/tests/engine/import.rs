//! Imports: what is asked of the fetcher, in which order things are published, and that policy holds for them too.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use async_trait::async_trait;
use skillz_engine::{ClientPort, EngineSettings, ImportRequest, NoClient, PolicyMode};
use skillz_json::{Map, Value, json};
use skillz_tool::{AnswerAction, ErrorKind, FetchProgress, FetchRequest, Fetched, SourceFetcher, ToolError};

use crate::support::{Fixture, client::FakeClient};

/// Hands out a folder, and remembers what was asked.
struct Shelf {
    folder: PathBuf,
    requests: Mutex<Vec<FetchRequest>>,
}

#[async_trait]
impl SourceFetcher for Shelf {
    async fn fetch(&self, request: FetchRequest, progress: FetchProgress) -> Result<Fetched, ToolError> {
        progress("Fetching the shelf");
        self.requests.lock().expect("whole").push(request);
        let provenance = Map::from_iter([("from".to_owned(), json!("the shelf")), ("commit".to_owned(), json!("abc"))]);
        let directory = self.folder.clone();
        Ok(Fetched { directory, provenance, name: "shelf".to_owned(), notes: Vec::new(), guard: Box::new(()) })
    }
}

fn write_tool(folder: &Path, name: &str, line: &str, fields: Value) {
    let mut manifest = json!({"name": name, "description": "A tool", "tool_type": "script", "entry_file": "line.txt"});
    manifest.as_object_mut().expect("an object").extend(fields.as_object().cloned().unwrap_or_default());
    let folder = folder.join(name);
    fs::create_dir_all(&folder).expect("a folder");
    fs::write(folder.join("manifest.json"), manifest.to_string()).expect("a manifest");
    fs::write(folder.join("line.txt"), line).expect("a source");
}

async fn fixture(change: impl FnOnce(&mut EngineSettings)) -> (Fixture, Arc<Shelf>) {
    let fixture = Fixture::with(change).await;
    let folder = fixture.folder.path().join("shelf");
    fs::create_dir(&folder).expect("a folder");
    let shelf = Arc::new(Shelf { folder, requests: Mutex::default() });
    fixture.engine.set_fetcher(Arc::clone(&shelf) as Arc<dyn SourceFetcher>);
    (fixture, shelf)
}

async fn import(fixture: &Fixture, client: Arc<dyn ClientPort>) -> Result<Value, ToolError> {
    let request = ImportRequest { source: "x".to_owned(), overwrite: true, ..ImportRequest::default() };
    fixture.engine.import(request, client).await
}

#[tokio::test]
async fn clients_of_other_machines_read_the_operators_folders_only() {
    let (fixture, shelf) = fixture(|settings| settings.roots = vec![PathBuf::from("/srv/work")]).await;
    let error = import(&fixture, Arc::new(NoClient)).await.expect_err("the shelf is empty");
    assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
    let remote = FakeClient { is_remote: true, roots: Some(vec![PathBuf::from("/")]), ..FakeClient::default() };
    import(&fixture, Arc::new(remote)).await.expect_err("the shelf is empty");
    let requests = shelf.requests.lock().expect("whole");
    assert_eq!(requests[0].allowed_folders, None);
    assert_eq!(requests[1].allowed_folders, Some(vec![PathBuf::from("/srv/work")]));
}

#[tokio::test]
async fn pipelines_of_pipelines_come_in_any_order() {
    let (fixture, shelf) = fixture(|_| ()).await;
    write_tool(&shelf.folder, "z_tool", "echo", json!({}));
    for (name, inner) in [("a_outer", "b_inner"), ("b_inner", "z_tool"), ("c_lost", "nowhere")] {
        let steps = json!({"tool_type": "pipeline", "pipeline_steps": [{"tool": inner, "args": {}}], "entry_file": null});
        write_tool(&shelf.folder, name, "", steps);
    }
    let client = Arc::new(FakeClient::default());
    let told = import(&fixture, Arc::clone(&client) as Arc<dyn ClientPort>).await.expect("most of it comes");
    assert_eq!(told["tools"].as_array().map(Vec::len), Some(3), "{told}");
    assert_eq!(told["refused"][0]["name"], json!("c_lost"));
    assert!(told["refused"][0]["reason"].as_str().is_some_and(|reason| reason.contains("nowhere")), "{told}");
    assert!(!fixture.call("a_outer", json!({})).await.is_error);
    let tool = fixture.engine.catalog().get("z_tool").cloned().expect("it is there");
    assert_eq!(tool.manifest.source, Some(json!({"from": "the shelf", "commit": "abc", "path": "z_tool", "origin": "import"})));
    assert!(!client.progress.lock().expect("whole").is_empty(), "progress is told");
}

#[tokio::test]
async fn an_imported_tool_gets_nothing_that_policy_holds_back() {
    let (fixture, shelf) = fixture(|settings| settings.policy.network = PolicyMode::Ask).await;
    let asks = json!({"permissions": {"network": true}, "examples": [{"arguments": {"a": 1}, "result": {"a": 1}}]});
    write_tool(&shelf.folder, "asks", "echo", asks);
    let error = import(&fixture, Arc::new(NoClient)).await.expect_err("nobody can be asked");
    assert!(error.text().contains("needs the user's consent"), "{error}");
    assert!(fixture.engine.catalog().is_empty());
    let declining = Arc::new(FakeClient::answering(AnswerAction::Decline));
    import(&fixture, Arc::clone(&declining) as Arc<dyn ClientPort>).await.expect_err("the user declined");
    assert_eq!(declining.questions().len(), 1);
    let agreeing = Arc::new(FakeClient::answering(AnswerAction::Accept));
    let told = import(&fixture, Arc::clone(&agreeing) as Arc<dyn ClientPort>).await.expect("the user agreed");
    assert!(told["notes"][0].as_str().is_some_and(|note| note.contains("`asks` ask for permissions")), "{told}");
    let reply = fixture.call_by("asks", json!({"a": 1}), Arc::clone(&agreeing) as Arc<dyn ClientPort>).await;
    assert!(!reply.is_error && agreeing.questions().len() == 1, "once for each tool and version");
}
