//! Limits of a tree, as root (by control groups, where there are any) and as a plain user (by looking).

use serde_json::json;
use skillz_process::Exit;
use skillz_sandbox::SandboxKind;

use crate::{
    server::Server,
    support::{alive, launcher, marker, name_of, shell, until},
};

const SANDBOXES: [SandboxKind; 2] = [SandboxKind::None, SandboxKind::Builtin];

fn servers() -> [Server; 2] {
    [Server::start(), Server::start_as_plain_user()]
}

#[test]
fn memory_beyond_the_limit_ends_the_tree() {
    for mut server in servers() {
        for sandbox in SANDBOXES {
            for script in ["tail /dev/zero", "tail /dev/zero; exit 5", "sleep 300 & (exec tail /dev/zero) ; exit $?"] {
                let (exit, output) = server.run(sandbox, script, &json!({"memory_bytes": 60_000_000}));
                assert_eq!(exit, "MemoryLimit", "{script} ({sandbox:?}): {output}");
            }
            let script = "head -c 20M /dev/zero | tail -c 10M | wc -c";
            let (exit, output) = server.run(sandbox, script, &json!({"memory_bytes": 60_000_000}));
            assert_eq!((exit.as_str(), output.as_str()), ("Code(0)", "10485760\n"), "{sandbox:?}");
        }
    }
}

#[test]
fn processes_beyond_the_limit_are_not_started_or_end_the_tree() {
    for mut server in servers() {
        for sandbox in SANDBOXES {
            // Perl gives up where the shell would try again and again.
            let script = r#"perl -e 'for (1..60) { my $p = fork; die $! unless defined $p; $p or exec "sleep", "60"; push @all, $p }
                sleep 2; print "all\n"; kill "KILL", @all'"#;
            let (exit, output) = server.run(sandbox, script, &json!({"max_processes": 20}));
            let refused = output.contains("Resource temporarily unavailable");
            assert!(exit == "ProcessLimit" || refused, "{sandbox:?}: {exit} {output}");
            let (exit, output) = server.run(sandbox, script, &json!({"max_processes": 100}));
            assert_eq!((exit.as_str(), output.as_str()), ("Code(0)", "all\n"), "{sandbox:?}");
        }
    }
}

#[test]
fn files_beyond_the_limit_are_not_written() {
    for mut server in servers() {
        for sandbox in SANDBOXES {
            let script = "f=$(mktemp); head -c 3000000 /dev/zero > $f; stat -c %s $f; rm $f; ulimit -c";
            let (_, output) = server.run(sandbox, script, &json!({"max_file_bytes": 1_000_000}));
            let numbers: Vec<&str> = output.lines().filter(|line| line.bytes().all(|byte| byte.is_ascii_digit())).collect();
            assert_eq!(numbers, ["1000000", "0"], "{sandbox:?}: {output}");
        }
    }
}

#[test]
fn the_report_says_how_limits_are_kept() {
    for (mut server, plain) in servers().into_iter().zip([false, true]) {
        let report = server.ask(&json!({"do": "probe", "sandbox": "builtin"}));
        let root = rustix::process::geteuid().is_root() && !plain;
        assert_eq!(
            (&report["available"], &report["confined"], &report["seccomp"]),
            (&json!(true), &json!(true), &json!(true)),
            "{report}"
        );
        assert_eq!(report["kind"], "builtin");
        if !root {
            assert!(["sampling", "cgroup"].contains(&report["memory_limit"].as_str().expect("text")), "{report}");
            assert!(["rlimit", "cgroup"].contains(&report["process_limit"].as_str().expect("text")), "{report}");
        }
        let report = server.ask(&json!({"do": "probe", "sandbox": "none"}));
        assert_eq!((&report["kind"], &report["confined"]), (&json!("none"), &json!(false)), "{report}");
        assert!(report["reason"].as_str().is_some_and(|reason| reason.contains("unconfined")), "{report}");
    }
}

#[tokio::test]
async fn a_worker_learns_that_its_call_died_for_memory() {
    let launcher = launcher();
    let marker = marker();
    let mut command = shell(&format!("(exec tail /dev/zero); echo $?; sleep {marker}"));
    command.limits.memory_bytes = Some(60_000_000);
    let mut child = launcher.spawn(command).await.expect("it starts");
    // Where the tree is only looked at, it ends as a whole; in a control group the largest process does.
    if launcher.probe().await.memory_limit == skillz_process::LimitMethod::Cgroup {
        let asked = child.memory_kills().await.expect("it answers");
        assert!(asked <= 1);
        until("the root goes on", || alive(&marker).iter().any(|pid| name_of(*pid) == "sleep"));
        assert_eq!(child.memory_kills().await.expect("it answers"), 1);
        child.kill().await;
    }
    assert_eq!(child.wait().await.expect("it ends"), Exit::MemoryLimit);
}
