//! Archives and single files from web servers.

use flate2::{Compression, write::GzEncoder};
use skillz_tool::ErrorKind;

use crate::support::{MANIFEST, Workshop, provenance, read};

fn archive() -> Vec<u8> {
    let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, content) in [("greet/manifest.json", MANIFEST), ("greet/main.sh", "echo one")] {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, content.as_bytes()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

#[tokio::test]
async fn archives_come_with_their_hash_and_over_redirects() {
    let workshop = Workshop::new();
    let server = workshop.serve();
    let bytes = archive();
    workshop.write("files/a/greet-1.tar.gz", &bytes);
    workshop.write("files/greet.tgz", &bytes);
    let address = &server.address;
    for source in [format!("{address}/a/greet-1.tar.gz"), format!("{address}/greet.tgz?token=s3cret")] {
        let fetched = workshop.fetch(&source).await.unwrap();
        assert_eq!(read(&fetched, "greet/main.sh"), "echo one");
        let hash = provenance(&fetched, "archive_hash");
        assert!(hash.starts_with("sha256:") && hash.len() == 7 + 64, "{hash}");
        assert!(!provenance(&fetched, "from").contains("s3cret"));
    }
    let part = workshop.fetch_part(&format!("{address}/a/greet-1.tar.gz"), None, Some("greet")).await.unwrap();
    assert_eq!(read(&part, "main.sh"), "echo one");
    drop(part);
    for part in ["greet/none", "none"] {
        let error = workshop.fetch_part(&format!("{address}/greet.tgz"), None, Some(part)).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
    }
    let (error, missing) = (workshop.fetch(&format!("{address}/missing.zip")).await.unwrap_err(), ErrorKind::NotFound);
    assert_eq!(error.kind, missing, "{error}");
    assert!(!workshop.has_scratch());
}

#[tokio::test]
async fn a_skill_file_is_a_skill() {
    let workshop = Workshop::new();
    let server = workshop.serve();
    workshop.write("files/skills/pdf/SKILL.md", "---\ndescription: Reads\n---\n");
    workshop.write("work/notes/SKILL.md", "Notes.");
    workshop.write("home/tips.md", "Tips.");
    for (source, name, text) in [
        (format!("{}/skills/pdf/SKILL.md", server.address), "pdf", "---\ndescription: Reads\n---\n"),
        ("notes/SKILL.md".to_owned(), "notes", "Notes."),
        ("~/tips.md".to_owned(), "tips", "Tips."),
    ] {
        let fetched = workshop.fetch(&source).await.unwrap();
        assert_eq!((fetched.name.as_str(), read(&fetched, "SKILL.md").as_str()), (name, text), "{source}");
        assert!(provenance(&fetched, "archive_hash").starts_with("sha256:"));
    }
}

#[tokio::test]
async fn redirects_and_sizes_have_limits() {
    let workshop = Workshop::new();
    let server = workshop.serve();
    // The API of gists is asked without git, so that what follows redirects is what is tested.
    let redirected = |to: &str| Workshop::with_api(&format!("{}/redirect?{to}#", server.address));
    workshop.write("files/target", r#"{"files": {"SKILL.md": {"filename": "SKILL.md", "content": "x"}}}"#);
    assert!(redirected("/target").fetch("gist:a1").await.is_ok(), "one redirect is followed");
    for to in ["file:///etc/passwd", "gopher://127.0.0.1/", "/loop"] {
        let error = redirected(to).fetch("gist:a1").await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Denied, "{to}: {error}");
    }
    let error = workshop.fetch(&format!("{}/large.zip", server.address)).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::LimitExceeded, "{error}");
    assert!(!workshop.has_scratch());
}
