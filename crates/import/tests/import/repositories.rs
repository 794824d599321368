//! Repositories behind real servers: smart HTTP, git's own protocol, and the file system.

use skillz_tool::ErrorKind;

use crate::support::{MANIFEST, Repository, Workshop, provenance, read};

/// A repository with two commits, a branch, tags, and a tool below `tools`.
fn repository(workshop: &Workshop) -> (Repository, String, String) {
    let repository = workshop.repository("r.git");
    repository.write("tools/greet/manifest.json", MANIFEST);
    repository.write("tools/greet/main.sh", "echo one");
    let first = repository.commit("one");
    repository.git(&["tag", "--annotate", "--message", "first", "v1"]);
    repository.write("tools/greet/main.sh", "echo two");
    let second = repository.commit("two");
    repository.git(&["checkout", "--quiet", "-b", "feature/x"]);
    repository.write("tools/greet/main.sh", "echo branch");
    repository.commit("branch");
    repository.git(&["checkout", "--quiet", "main"]);
    (repository, first, second)
}

async fn every_reference_is_found(workshop: &Workshop, url: &str, first: &str, second: &str) {
    let short = &first[..10];
    for (reference, code, commit) in [
        (None, "echo two", Some(second)),
        (Some("main"), "echo two", Some(second)),
        (Some("v1"), "echo one", Some(first)),
        (Some("feature/x"), "echo branch", None),
        (Some(first), "echo one", Some(first)),
        (Some(short), "echo one", Some(first)),
    ] {
        let given = reference.map_or_else(|| url.to_owned(), |reference| format!("{url}#{reference}"));
        let fetched = workshop.fetch(&given).await.unwrap_or_else(|error| panic!("{given}: {error}"));
        assert_eq!(read(&fetched, "tools/greet/main.sh"), code, "{given}");
        assert_eq!(provenance(&fetched, "commit").len(), 40, "{given}");
        assert!(commit.is_none_or(|commit| provenance(&fetched, "commit") == commit), "{given}");
        assert_eq!(provenance(&fetched, "ref"), reference.unwrap_or_default());
        drop(fetched);
        assert!(!workshop.has_scratch(), "{given}");
    }
    let part = workshop.fetch_part(url, Some("v1"), Some("tools/greet")).await.unwrap();
    assert_eq!(
        (read(&part, "main.sh").as_str(), provenance(&part, "path"), part.name.as_str()),
        ("echo one", "tools/greet", "greet")
    );
    drop(part);
    for (reference, path, words) in [
        (Some("no-such-branch"), None, "has no branch, tag or commit `no-such-branch`"),
        (Some("0123456789012345678901234567890123456789"), None, "has no branch, tag or commit"),
        (None, Some("no/such/folder"), "`no/such/folder` is not there"),
        (None, Some("tools/greet/main.sh"), "is no folder"),
    ] {
        let error = workshop.fetch_part(url, reference, path).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotFound, "{error}");
        assert!(error.message.contains(words), "{error}");
    }
    assert!(!workshop.has_scratch());
}

#[tokio::test]
async fn over_smart_http() {
    let workshop = Workshop::new();
    let (_repository, first, second) = repository(&workshop);
    let server = workshop.serve();
    every_reference_is_found(&workshop, &format!("{}/git/r.git", server.address), &first, &second).await;
    let error = workshop.fetch(&format!("{}/git/missing.git", server.address)).await.unwrap_err();
    assert!(error.message.contains("could not be fetched"), "{error}");
}

#[tokio::test]
async fn over_gits_own_protocol() {
    let workshop = Workshop::new();
    let (_repository, first, second) = repository(&workshop);
    let address = workshop.serve_git();
    every_reference_is_found(&workshop, &format!("{address}/r.git"), &first, &second).await;
}

#[tokio::test]
async fn from_the_file_system() {
    let workshop = Workshop::new();
    let (repository, first, second) = repository(&workshop);
    repository.git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
    every_reference_is_found(&workshop, &format!("file://{}", workshop.path("repositories/bare.git").display()), &first, &second)
        .await;
    let head = repository.git(&["rev-parse", "HEAD"]);
    let by_url = workshop.fetch(&format!("file://{}", repository.folder.display())).await.unwrap();
    assert_eq!(provenance(&by_url, "commit"), head, "a repository's address is one, whoever works in it");
    // As it lies there, or at a reference.
    repository.write("tools/greet/main.sh", "echo uncommitted");
    let folder = repository.folder.display().to_string();
    let as_it_lies = workshop.fetch(&folder).await.unwrap();
    assert_eq!(read(&as_it_lies, "tools/greet/main.sh"), "echo uncommitted");
    assert_eq!(provenance(&as_it_lies, "repository_head"), head);
    assert_eq!(read(&workshop.fetch(&format!("{folder}#v1")).await.unwrap(), "tools/greet/main.sh"), "echo one");
    assert_eq!(
        read(&workshop.fetch_part("../repositories/r.git", Some("main"), None).await.unwrap(), "tools/greet/main.sh"),
        "echo two"
    );
}

#[tokio::test]
async fn nothing_of_a_repository_runs_and_links_are_left_out() {
    let workshop = Workshop::new();
    let repository = workshop.repository("r.git");
    let marker = workshop.path("ran");
    repository.write("manifest.json", MANIFEST);
    repository.write("main.sh", "echo $Id$\r\n");
    repository.write(".gitattributes", "* filter=evil ident export-subst\nmain.sh export-ignore\n");
    repository.write(".lfsconfig", "[lfs]\n\turl = http://127.0.0.1:1/\n");
    repository.write(".gitmodules", "[submodule \"s\"]\n\tpath = s\n\turl = ext::sh -c 'touch ran'\n");
    std::os::unix::fs::symlink("/etc/passwd", repository.folder.join("passwd")).unwrap();
    std::os::unix::fs::symlink("/etc", repository.folder.join("etc")).unwrap();
    repository.commit("one");
    for hook in ["post-checkout", "post-update", "pre-receive", "reference-transaction", "post-merge"] {
        let path = repository.folder.join(".git/hooks").join(hook);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("#!/bin/sh\ntouch {}\n", marker.display())).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    repository.git(&["config", "filter.evil.smudge", &format!("touch {}", marker.display())]);
    repository.git(&["config", "uploadpack.packObjectsHook", &format!("touch {}", marker.display())]);
    let fetched = workshop.fetch_part(&format!("file://{}", repository.folder.display()), Some("main"), None).await.unwrap();
    assert_eq!(read(&fetched, "main.sh"), "echo $Id$\r\n", "files come byte for byte, whatever the attributes say");
    assert!(!fetched.directory.join("passwd").exists() && !fetched.directory.join("etc").exists());
    assert_eq!(fetched.notes.len(), 2, "{:?}", fetched.notes);
    assert!(fetched.notes.iter().any(|note| note.contains("`passwd` is a symbolic link")), "{:?}", fetched.notes);
    assert!(!marker.exists());
}

#[tokio::test]
async fn passwords_are_not_told() {
    let workshop = Workshop::new();
    let (_repository, _, _) = repository(&workshop);
    let server = workshop.serve();
    let host = server.address.trim_start_matches("http://");
    let fetched = workshop.fetch(&format!("http://me:hunter2@{host}/git/r.git")).await.unwrap();
    assert_eq!(provenance(&fetched, "from"), format!("http://{host}/git/r.git"));
    for url in [format!("http://me:hunter2@{host}/git/missing.git"), "http://me:hunter2@127.0.0.1:1/r.git".to_owned()] {
        let error = workshop.fetch(&url).await.unwrap_err();
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}

#[tokio::test]
async fn giving_up_stops_git_and_leaves_nothing() {
    let workshop = Workshop::new();
    // A server that takes the connection and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/r.git", silent.local_addr().unwrap());
    let mut connection = tokio::select! {
        _ = workshop.fetch(&url) => panic!("the server says nothing"),
        connection = silent.accept() => connection.unwrap().0,
    };
    assert!(!workshop.has_scratch());
    // Git is gone: its end of the connection is closed.
    let mut said = Vec::new();
    let closed = tokio::io::AsyncReadExt::read_to_end(&mut connection, &mut said);
    tokio::time::timeout(std::time::Duration::from_secs(60), closed).await.expect("git has ended").ok();
}
