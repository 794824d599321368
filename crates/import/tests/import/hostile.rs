//! Sources that are read as options, commands or paths by whoever is careless.

use skillz_tool::{ErrorKind, FetchRequest};

use crate::support::{MANIFEST, Workshop};

#[tokio::test]
async fn options_and_commands_are_refused() {
    let workshop = Workshop::new();
    let repository = workshop.repository("r.git");
    repository.write("manifest.json", MANIFEST);
    repository.commit("one");
    let marker = workshop.path("ran");
    let touch = format!("touch {}", marker.display());
    let url = format!("file://{}", repository.folder.display());
    let before = workshop.everything();
    for (source, reference, path) in [
        (format!("--upload-pack={touch}"), None, None),
        (format!("ext::sh -c '{touch}'"), None, None),
        (format!("git+ext::sh -c '{touch}'"), None, None),
        (format!("ssh://-oProxyCommand={touch}/x"), None, None),
        (format!("-oProxyCommand={touch}@h:x"), None, None),
        ("fd::0".to_owned(), None, None),
        (url.clone(), Some(format!("--upload-pack={touch}")), None),
        (url.clone(), Some("--foo".to_owned()), None),
        (url.clone(), Some("main:refs/heads/x".to_owned()), None),
        (format!("{url}#--foo"), None, None),
        (url.clone(), Some("main".to_owned()), Some("../..".to_owned())),
        (url.clone(), Some("main".to_owned()), Some("/etc".to_owned())),
        (url.clone(), None, Some("..".to_owned())),
        ("gist:../y".to_owned(), None, None),
        ("ftp://127.0.0.1/x.tar.gz".to_owned(), None, None),
    ] {
        let request =
            FetchRequest { source: source.clone(), reference: reference.clone(), path: path.clone(), allowed_folders: None };
        let error = workshop.request(request).await.expect_err(&source);
        assert_eq!(error.kind, ErrorKind::Denied, "{source} {reference:?} {path:?}: {error}");
    }
    assert!(!marker.exists());
    assert_eq!(workshop.everything(), before);
}

#[tokio::test]
async fn folders_are_for_those_who_may_read_them() {
    let workshop = Workshop::new();
    workshop.write("work/tool/manifest.json", MANIFEST);
    workshop.write("elsewhere/manifest.json", MANIFEST);
    std::os::unix::fs::symlink(workshop.path("elsewhere"), workshop.path("work/link")).unwrap();
    let request = |source: &str| FetchRequest {
        source: source.to_owned(),
        allowed_folders: Some(vec![workshop.path("work")]),
        ..FetchRequest::default()
    };
    assert!(workshop.request(request("tool")).await.is_ok());
    let elsewhere = workshop.path("elsewhere").display().to_string();
    for source in
        [elsewhere.clone(), format!("file://{elsewhere}"), "../elsewhere".to_owned(), "link".to_owned(), "/etc".to_owned()]
    {
        let error = workshop.request(request(&source)).await.expect_err(&source);
        assert_eq!(error.kind, ErrorKind::Denied, "{source}: {error}");
    }
    for source in ["git@127.0.0.1:operator/private.git", "ssh://git@127.0.0.1/operator/private.git"] {
        let error = workshop.request(request(source)).await.expect_err(source);
        assert_eq!(error.kind, ErrorKind::Denied, "{source}: {error}");
        assert!(error.text().contains("keys"), "{error}");
    }
    let error = workshop.fetch_part("tool", None, Some("none")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::NotFound);
    std::os::unix::fs::symlink(workshop.path("elsewhere"), workshop.path("work/tool/out")).unwrap();
    let error = workshop.fetch_part("tool", None, Some("out")).await.unwrap_err();
    assert_eq!(error.kind, ErrorKind::Denied, "{error}");
    assert_eq!(workshop.fetch("no-such-folder").await.unwrap_err().kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn devices_and_pipes_are_not_waited_for() {
    let workshop = Workshop::new();
    workshop.write("work/x/notes.md", "nothing");
    for pipe in ["pipe", "SKILL.md"] {
        assert!(std::process::Command::new("mkfifo").arg(workshop.path("work/x").join(pipe)).status().unwrap().success());
    }
    for source in [
        "/dev/zero".to_owned(),
        workshop.path("work/x/pipe").display().to_string(),
        workshop.path("work/x/SKILL.md").display().to_string(),
    ] {
        let fetched = tokio::time::timeout(std::time::Duration::from_secs(30), workshop.fetch(&source)).await;
        let error = fetched.expect("an answer").expect_err(&source);
        assert!(error.text().contains("neither a file nor a folder"), "{source}: {error}");
    }
}
