//! Lists of tools and what stands in `tools/list`.

use std::sync::Arc;

use skillz_engine::{Detail, Exposure, ListRequest, Machine};
use skillz_json::{Value, json};
use skillz_tool::ToolKind;

use crate::support::Fixture;

async fn list(fixture: &Fixture, request: ListRequest) -> Value {
    fixture.engine.list(request).await.expect("a list")
}

struct Bare;

#[async_trait::async_trait]
impl Machine for Bare {
    async fn warnings(&self) -> Vec<String> {
        vec!["There is no sandbox here".to_owned()]
    }
}

async fn some_tools() -> Fixture {
    let fixture = Fixture::new().await;
    fixture.engine.set_machine(Arc::new(Bare));
    for (name, kind, description, tags) in [
        ("currency_convert", "wasm", "Converts an amount of money between currencies", json!(["Money"])),
        ("resize_image", "script", "Scales a picture to a width and a height", json!([])),
        ("word_count", "script", "Counts the words of a text. Quickly.", json!(["text"])),
    ] {
        let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
        let fields = json!({"tool_type": kind, "description": description, "tags": tags, "input_schema": schema});
        fixture.publish_with(name, "echo", fields).await.expect("published");
    }
    fixture.publish_with("old_one", "echo", json!({"disabled": true})).await.expect("published");
    fixture
}

#[tokio::test]
async fn tools_are_grouped_by_kind() {
    let fixture = some_tools().await;
    let summary = list(&fixture, ListRequest::default()).await;
    assert_eq!(
        summary,
        json!({
            "total": 3,
            "wasm": [{"name": "currency_convert", "description": "Converts an amount of money between currencies", "version": "1.0.0"}],
            "script": [
                {"name": "resize_image", "description": "Scales a picture to a width and a height", "version": "1.0.0"},
                {"name": "word_count", "description": "Counts the words of a text. Quickly.", "version": "1.0.0"},
            ],
            "pipeline": [], "mcp": [], "disabled": ["old_one"], "warnings": ["There is no sandbox here"],
        })
    );
    let names =
        list(&fixture, ListRequest { detail: Detail::Names, kind: Some(ToolKind::Script), ..ListRequest::default() }).await;
    assert_eq!(
        (names["total"].clone(), names["script"].clone(), names["wasm"].clone()),
        (json!(2), json!(["resize_image", "word_count"]), json!([]))
    );
    let tagged =
        list(&fixture, ListRequest { detail: Detail::Signature, tag: Some("money".to_owned()), ..ListRequest::default() }).await;
    assert_eq!(tagged["wasm"], json!(["currency_convert(a: str)  # Converts an amount of money between currencies"]));
    let full = list(&fixture, ListRequest { detail: Detail::Full, ..ListRequest::default() }).await;
    let entry = &full["wasm"][0];
    for field in
        ["name", "kind", "description", "version", "input_schema", "examples", "permissions", "versions", "path", "hash", "tags"]
    {
        assert!(entry.get(field).is_some(), "{field} is missing: {entry}");
    }
    assert!(entry["path"].as_str().expect("a path").ends_with("tools/currency_convert"), "{entry}");
}

#[tokio::test]
async fn questions_are_answered_best_first() {
    let fixture = some_tools().await;
    let question =
        |detail| ListRequest { query: Some("how much is 250 dollars in euros".to_owned()), detail, ..ListRequest::default() };
    let ranked = list(&fixture, question(Detail::Summary)).await;
    assert_eq!(ranked["total"], 3);
    assert_eq!(
        ranked["ranked"][0],
        json!({"name": "currency_convert", "description": "Converts an amount of money between currencies", "version": "1.0.0", "kind": "wasm"})
    );
    assert_eq!(list(&fixture, question(Detail::Names)).await["ranked"][0], json!({"name": "currency_convert", "kind": "wasm"}));
    assert_eq!(list(&fixture, question(Detail::Full)).await["ranked"][0]["kind"], "wasm");
    let filtered = list(&fixture, ListRequest { kind: Some(ToolKind::Script), ..question(Detail::Names) }).await;
    assert_eq!((filtered["total"].clone(), filtered["ranked"].as_array().map(Vec::len)), (json!(2), Some(2)));
    fixture
        .publish_with("exchange_rate", "echo", json!({"description": "How much a dollar is in euros"}))
        .await
        .expect("published");
    let ranked = list(&fixture, question(Detail::Names)).await;
    assert!(ranked["ranked"].to_string().contains("exchange_rate"), "the index follows at once: {ranked}");
    fixture.engine.delete("exchange_rate").await.expect("deleted");
    assert!(!list(&fixture, question(Detail::Names)).await.to_string().contains("exchange_rate"));
}

#[tokio::test]
async fn pages_follow_each_other_while_tools_come_and_go() {
    let fixture = Fixture::new().await;
    for number in 0..7 {
        fixture.publish(&format!("tool_{number}"), "echo").await;
    }
    for query in [None, Some("does echo".to_owned())] {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let request =
                ListRequest { detail: Detail::Names, limit: Some(3), cursor, query: query.clone(), ..ListRequest::default() };
            let page = list(&fixture, request).await;
            let entries = page["wasm"].as_array().or(page["ranked"].as_array()).expect("entries");
            seen.extend(entries.iter().map(|entry| entry["name"].as_str().or(entry.as_str()).expect("a name").to_owned()));
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            assert_eq!(page["total"], 7);
            if cursor.is_none() {
                break;
            }
        }
        seen.sort();
        let all: Vec<String> = (0..7).map(|number| format!("tool_{number}")).collect();
        assert_eq!(seen, all);
    }
    let page = list(&fixture, ListRequest { limit: Some(3), ..ListRequest::default() }).await;
    let cursor = page["next_cursor"].as_str().map(str::to_owned);
    fixture.engine.delete("tool_2").await.expect("deleted");
    fixture.engine.delete("tool_0").await.expect("deleted");
    let page = list(&fixture, ListRequest { detail: Detail::Names, limit: Some(3), cursor, ..ListRequest::default() }).await;
    assert_eq!(page["wasm"], json!(["tool_3", "tool_4", "tool_5"]));
    for cursor in ["x", "wasm", "9/tool", "script"] {
        let request = ListRequest { cursor: Some(cursor.to_owned()), ..ListRequest::default() };
        assert!(fixture.engine.list(request).await.is_err(), "{cursor}");
    }
}

#[tokio::test]
async fn many_tools_leave_the_list_to_the_pinned_ones() {
    for (exposure, few, many) in [(Exposure::Auto, 27, 1), (Exposure::All, 27, 28), (Exposure::Pinned, 1, 1)] {
        let fixture = Fixture::with(|settings| settings.exposure = exposure).await;
        fixture.publish_with("always", "echo", json!({"pinned": true})).await.expect("published");
        for number in 1..27 {
            fixture.publish(&format!("tool_{number}"), "echo").await;
        }
        assert_eq!(fixture.engine.exposed().tools.len(), few, "{exposure:?}");
        fixture.publish("one_more", "echo").await;
        let exposed = fixture.engine.exposed();
        assert_eq!((exposed.tools.len(), exposed.more), (many, exposure != Exposure::All), "{exposure:?}");
        assert!(exposed.tools.is_sorted_by_key(|tool| tool.name.clone()));
        assert!(!fixture.call("one_more", json!({})).await.is_error, "it stays callable");
    }
}
