//! Gists, over an API of GitHub's shape.

use serde_json::{Value, json};
use skillz_tool::ErrorKind;

use crate::support::{MANIFEST, Workshop, provenance, read};

const REVISION: &str = "00112233445566778899aabbccddeeff00112233";

fn file(name: &str, content: &str) -> Value {
    json!({"filename": name, "type": "text/plain", "size": content.len(), "truncated": false, "content": content, "raw_url": "http://127.0.0.1:1/no"})
}

fn answer(files: &Value) -> String {
    json!({"id": "ab12", "files": files, "history": [{"version": REVISION}], "truncated": false}).to_string()
}

#[tokio::test]
async fn files_come_over_the_api_and_truncated_ones_from_their_address() {
    let files = Workshop::new();
    let server = files.serve();
    let workshop = Workshop::with_api(&server.address);
    let long = "x".repeat(2_000_000);
    files.write("files/raw/long.txt", &long);
    let mut parts = json!({"manifest.json": file("manifest.json", MANIFEST), "main.sh": file("main.sh", "echo one")});
    parts["long.txt"] =
        json!({"filename": "long.txt", "truncated": true, "content": "x", "raw_url": format!("{}/raw/long.txt", server.address)});
    parts["bytes"] = json!({"filename": "bytes", "truncated": false, "encoding": "base64", "content": "AAEC\n"});
    files.write("files/gists/ab12", answer(&parts));
    files.write("files/gists/cd34/ffff", answer(&json!({"SKILL.md": file("SKILL.md", "old")})));
    for source in ["gist:ab12", "https://gist.github.com/me/ab12", "gist:me/ab12"] {
        let fetched = workshop.fetch(source).await.unwrap();
        assert_eq!((read(&fetched, "main.sh").as_str(), read(&fetched, "long.txt") == long), ("echo one", true));
        assert_eq!(std::fs::read(fetched.directory.join("bytes")).unwrap(), [0, 1, 2]);
        assert_eq!((provenance(&fetched, "from"), provenance(&fetched, "commit")), ("gist:ab12", REVISION));
    }
    assert_eq!(read(&workshop.fetch("gist:cd34#ffff").await.unwrap(), "SKILL.md"), "old");
    assert_eq!(workshop.fetch("gist:ee55").await.unwrap_err().kind, ErrorKind::NotFound);
    assert!(!workshop.has_scratch());
}

#[tokio::test]
async fn names_that_lead_out_and_foreign_addresses_are_refused() {
    let files = Workshop::new();
    let server = files.serve();
    let workshop = Workshop::with_api(&server.address);
    for (id, name) in [("a1", "../y"), ("a2", "/etc/x"), ("a3", "a/b"), ("a4", "..")] {
        let mut parts = json!({"main.sh": file("main.sh", "echo")});
        parts[name] = file(name, "evil");
        files.write(&format!("files/gists/{id}"), answer(&parts));
        let before = workshop.everything();
        let error = workshop.fetch(&format!("gist:{id}")).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{error}");
        assert!(error.message.contains(name), "{error}");
        assert_eq!(workshop.everything(), before, "{name}");
    }
    for raw in ["http://10.0.0.1/secret", "file:///etc/passwd", "http://169.254.169.254/latest"] {
        let parts = json!({"a": {"filename": "a", "truncated": true, "raw_url": raw}});
        files.write("files/gists/b1", answer(&parts));
        let error = workshop.fetch("gist:b1").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    }
    files.write("files/gists/c1", json!({"files": {}, "truncated": true}).to_string());
    assert_eq!(workshop.fetch("gist:c1").await.unwrap_err().kind, ErrorKind::LimitExceeded);
    files.write("files/gists/c2", "<html>");
    assert!(workshop.fetch("gist:c2").await.unwrap_err().message.contains("form that is not known"));
}
