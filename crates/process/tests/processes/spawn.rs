//! Starting programs, unconfined: what they get, how they end, what a failure says.

use serde_json::json;
use skillz_process::{Exit, Keep, ProcessError, drain};
use skillz_sandbox::SandboxKind;
use tokio::io::AsyncWriteExt;

use crate::{
    server::Server,
    support::{command, launcher, output, shell, until},
};

#[tokio::test]
async fn ends_are_told_as_they_were() {
    let launcher = launcher();
    for (script, expected) in [
        ("true", Exit::Code(0)),
        ("exit 7", Exit::Code(7)),
        ("exit 255", Exit::Code(255)),
        ("kill -TERM $$", Exit::Signal(15)),
        ("kill -KILL $$", Exit::Signal(9)),
        ("kill -SEGV $$", Exit::Signal(11)),
    ] {
        let mut child = launcher.spawn(shell(script)).await.expect(script);
        assert_eq!(child.wait().await.expect(script), expected, "{script}");
        assert_eq!(child.wait().await.expect("asked again"), expected, "{script}");
    }
}

#[tokio::test]
async fn what_cannot_start_says_why() {
    let launcher = launcher();
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("plain.txt");
    std::fs::write(&text, "no program").expect("written");
    for (program, directory, expected) in [
        ("/nonexistent/program".into(), "/".into(), "`/nonexistent/program` could not be started: No such file"),
        (text.clone(), "/".into(), "could not be started: Permission denied"),
        (folder.path().to_owned(), "/".into(), "could not be started: Permission denied"),
        ("/bin/true".into(), text.clone(), "cannot be entered"),
        ("/bin/true".into(), folder.path().join("missing"), "cannot be entered"),
    ] {
        let mut command = command(&program, &[]);
        command.directory = directory;
        let error = launcher.spawn(command).await.expect_err("it cannot start");
        assert!(matches!(error, ProcessError::Start { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let orphan = folder.path().join("orphan");
    std::fs::write(&orphan, "#!/nonexistent/interpreter\n").expect("written");
    std::fs::set_permissions(&orphan, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("made executable");
    let error = launcher.spawn(command(&orphan, &[])).await.expect_err("it cannot start");
    assert!(error.to_string().contains("the interpreter that its first line names"), "{error}");
    let mut zero = command("/bin/true".as_ref(), &["a\0b"]);
    zero.environment.clear();
    let error = launcher.spawn(zero).await.expect_err("no program can be given this");
    assert!(error.to_string().contains("zero byte"), "{error}");
}

#[tokio::test]
async fn environment_arguments_and_folder_are_exact() {
    let launcher = launcher();
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().canonicalize().expect("it is there");
    let mut env = command("/usr/bin/env".as_ref(), &[]);
    env.environment = vec![("B".into(), "2 = zwei".into()), ("A".into(), "1".into())];
    assert_eq!(output(&launcher, env).await, "B=2 = zwei\nA=1\n");

    let mut print = command("/usr/bin/printf".as_ref(), &["[%s]", "a b", "", "*", "ü"]);
    print.directory.clone_from(&real);
    assert_eq!(output(&launcher, print).await, "[a b][][*][ü]");

    let mut pwd = command("/bin/pwd".as_ref(), &["-P"]);
    pwd.directory.clone_from(&real);
    assert_eq!(output(&launcher, pwd).await.trim_end(), real.to_str().expect("plain"));
}

#[tokio::test]
async fn large_arguments_pass() {
    let launcher = launcher();
    let mut wc = shell("printf %s \"$BIG\" | wc -c");
    wc.environment.push(("BIG".into(), "x".repeat(120_000).into()));
    wc.arguments.extend((0..10).map(|_| "y".repeat(100_000).into()));
    assert_eq!(output(&launcher, wc).await.trim(), "120000");
}

#[tokio::test]
async fn a_fresh_program_has_default_signals_own_session_and_three_descriptors() {
    let launcher = launcher();
    let status = output(&launcher, command("/bin/cat".as_ref(), &["/proc/self/status"])).await;
    for line in ["SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000"] {
        assert!(status.contains(line), "{status}");
    }
    let listed = output(&launcher, command("/bin/ls".as_ref(), &["/proc/self/fd"])).await;
    // The fourth is the folder that `ls` reads.
    assert_eq!(listed, "0\n1\n2\n3\n");
    let stat = output(&launcher, command("/bin/cat".as_ref(), &["/proc/self/stat"])).await;
    let fields: Vec<&str> = stat.rsplit(')').next().expect("it has a name").split_whitespace().collect();
    let own = stat.split_whitespace().next().expect("its id");
    assert_eq!((fields[3], fields[4]), (own, "0"), "leads its session, without a terminal: {stat}");
}

#[tokio::test]
async fn stdin_flows_and_closes() {
    let launcher = launcher();
    let mut child = launcher.spawn(command("/bin/cat".as_ref(), &[])).await.expect("cat starts");
    let mut stdin = child.stdin.take().expect("it has one");
    stdin.write_all(b"one\n").await.expect("it is read");
    drop(stdin);
    let stdout = child.stdout.take().expect("it has one");
    let drained = drain(stdout, Keep::Head(100), None).await.expect("no budget");
    assert_eq!(drained.bytes, b"one\n");
    assert_eq!(child.wait().await.expect("it ends"), Exit::Code(0));
}

#[tokio::test]
async fn a_flood_on_stderr_blocks_nobody() {
    let launcher = launcher();
    let mut child = launcher.spawn(shell("head -c 1048576 /dev/zero >&2; echo done")).await.expect("it starts");
    let (stdout, stderr) = (child.stdout.take().expect("out"), child.stderr.take().expect("err"));
    let (out, err, exit) =
        tokio::join!(drain(stdout, Keep::Head(100), None), drain(stderr, Keep::Tail(1000), None), child.wait());
    assert_eq!(out.expect("no budget").bytes, b"done\n");
    let err = err.expect("no budget");
    assert_eq!((err.bytes.len(), err.total), (1000, 1_048_576));
    assert_eq!(exit.expect("it ends"), Exit::Code(0));
}

#[tokio::test]
async fn many_at_once_get_their_own_output() {
    let launcher = launcher();
    let runs = (0..64).map(|number| {
        let launcher = launcher.clone();
        tokio::spawn(async move { (number, output(&launcher, shell(&format!("echo {number}"))).await) })
    });
    for run in runs.collect::<Vec<_>>() {
        let (number, printed) = run.await.expect("it ran");
        assert_eq!(printed, format!("{number}\n"));
    }
}

#[tokio::test]
async fn warming_up_prepares_a_supervisor_before_the_first_request() {
    for sandbox in [SandboxKind::None, SandboxKind::Builtin] {
        let mut server = Server::start();
        let before = server.ask(&json!({"do": "count"}))["descendants"].as_u64();
        assert_eq!(before, Some(0));
        server.ask(&json!({"do": "warm", "sandbox": sandbox}));
        until("helper and supervisor are there", || server.ask(&json!({"do": "count"}))["descendants"] == 2);
        assert_eq!(server.run(sandbox, "echo warm", &json!({})), ("Code(0)".to_owned(), "warm\n".to_owned()));
    }
}
