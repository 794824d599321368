//! Programs that read their stdin to the end are told from those that are at work.

use std::time::{Duration, Instant};

use skillz_sandbox::{Policy, SandboxKind};

use crate::support::{launcher_with, shell};

/// Whether a script that holds its stdin open comes to wait for nothing else.
async fn comes_to_wait(script: &str, confined: bool) -> bool {
    let launcher = launcher_with(if confined { SandboxKind::Auto } else { SandboxKind::None });
    let mut command = shell(script);
    command.policy = confined.then(Policy::default);
    let mut child = launcher.spawn(command).await.expect("starts");
    let deadline = Instant::now() + Duration::from_secs(10);
    // Those at work stay so for longer than this test looks; looking ends early for the others.
    let mut looks = 0;
    while Instant::now() < deadline && looks < 40 {
        if child.waits_for_input().await.expect("is there") {
            return true;
        }
        looks += 1;
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    false
}

#[tokio::test]
async fn waiting_for_the_end_of_input_is_seen() {
    for confined in [false, true] {
        for script in [
            "cat",
            "cat | cat | wc -l",
            "read a; read b",
            "x=$(cat); echo $x",
            "exec python3 -c 'import sys; sys.stdin.read()'",
            "exec /usr/bin/python3 -c 'import sys, threading; t = threading.Thread(target=sys.stdin.read); t.start(); t.join()'",
        ] {
            assert!(comes_to_wait(script, confined).await, "{script} confined: {confined}");
        }
    }
}

#[tokio::test]
async fn work_is_not_taken_for_waiting() {
    for confined in [false, true] {
        for script in [
            "sleep 30",
            "while :; do :; done",
            "sleep 30 | cat",
            "(sleep 30; echo) & cat",
            "exec /usr/bin/python3 -c 'import sys, threading, time; threading.Thread(target=sys.stdin.read, daemon=True).start(); time.sleep(30)'",
            "cat < /dev/null; sleep 30",
        ] {
            assert!(!comes_to_wait(script, confined).await, "{script} confined: {confined}");
        }
    }
}
