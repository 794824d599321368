//! Whatever a tree does, and however it or its owner ends, nothing of it is left.

use std::time::Duration;

use serde_json::json;
use skillz_process::{Exit, Launcher, ProcessError};
use skillz_sandbox::{Policy, SandboxKind};

use crate::{
    server::Server,
    support::{alive, descendants, launcher_with, marker, name_of, shell, stat_field, until},
};

/// All ways to confine that there are here.
fn sandboxes() -> Vec<SandboxKind> {
    let mut sandboxes = vec![SandboxKind::None, SandboxKind::Builtin];
    if skillz_sandbox::bubblewrap::find().is_ok() {
        sandboxes.push(SandboxKind::Bubblewrap);
    }
    sandboxes
}

/// Ways to outlive one's parent; `M` stands for the seconds to sleep. Each runs at least two processes.
const FUGITIVES: [&str; 5] = [
    "sleep M & sleep M",
    "setsid sleep M & wait",
    "(setsid sleep M &) ; (sleep M &) ; sleep M",
    "trap '' TERM HUP INT; nohup setsid bash -c 'trap \"\" TERM HUP INT; sleep M; sleep M' >/dev/null 2>&1 & sleep M",
    "for i in 1 2 3 4 5 6 7 8; do (setsid bash -c '(setsid sleep M &) ; sleep M' &); done; sleep M",
];

async fn fugitive(launcher: &Launcher, script: &str) -> (skillz_process::Child, String) {
    let marker = marker();
    let mut command = shell(&script.replace('M', &marker));
    command.policy = Some(Policy::default());
    let child = launcher.spawn(command).await.expect("it starts");
    let started =
        || alive(&marker).iter().filter(|pid| name_of(**pid) == "sleep").count() > usize::from(!script.contains("wait"));
    until("the sleepers run", started);
    (child, marker)
}

#[tokio::test]
async fn dropping_ends_the_tree() {
    for sandbox in sandboxes() {
        let launcher = launcher_with(sandbox);
        for script in FUGITIVES {
            let (child, marker) = fugitive(&launcher, script).await;
            drop(child);
            until(&format!("{script} is gone ({sandbox:?})"), || alive(&marker).is_empty());
        }
    }
}

#[tokio::test]
async fn killing_waits_until_all_are_gone() {
    for sandbox in sandboxes() {
        let launcher = launcher_with(sandbox);
        for script in FUGITIVES {
            let (mut child, marker) = fugitive(&launcher, script).await;
            child.kill().await;
            assert_eq!(alive(&marker), Vec::<u32>::new(), "{script} ({sandbox:?})");
            assert_eq!(child.wait().await.expect("it was followed"), Exit::Signal(9));
        }
    }
}

#[tokio::test]
async fn leftovers_of_a_root_that_ends_are_gone_when_that_is_told() {
    for sandbox in sandboxes() {
        let launcher = launcher_with(sandbox);
        let marker = marker();
        let script = "(setsid sleep M &) ; sleep M & disown; setsid bash -c 'sleep M; true' & exit 3".replace('M', &marker);
        let mut command = shell(&script);
        command.policy = Some(Policy::default());
        let mut child = launcher.spawn(command).await.expect("it starts");
        assert_eq!(child.wait().await.expect("it ends"), Exit::Code(3));
        assert_eq!(alive(&marker), Vec::<u32>::new(), "{sandbox:?}");
        // The leftovers held the pipes; now they end.
        let mut stdout = child.stdout.take().expect("it has one");
        assert_eq!(tokio::io::AsyncReadExt::read(&mut stdout, &mut [0; 8]).await.expect("it ends"), 0);
    }
}

#[tokio::test]
async fn waiting_does_not_wait_for_pipes() {
    let launcher = launcher_with(SandboxKind::None);
    let mut child = launcher.spawn(shell("yes | head -c 300000 >&2 & exit 0")).await.expect("it starts");
    assert_eq!(child.wait().await.expect("it ends"), Exit::Code(0));
}

#[tokio::test]
async fn a_cancelled_start_leaves_nothing() {
    for sandbox in sandboxes() {
        let launcher = launcher_with(sandbox);
        launcher.spawn(shell("true")).await.expect("the helper starts");
        let markers: Vec<String> = (0..20).map(|_| marker()).collect();
        for (number, marker) in markers.iter().enumerate() {
            let spawn = launcher.spawn(shell(&format!("sleep {marker} & sleep {marker}")));
            let patience = Duration::from_micros(100 * number as u64);
            let _ = tokio::time::timeout(patience, async { spawn.await.map(drop) }).await;
        }
        until("all are gone", || markers.iter().all(|marker| alive(marker).is_empty()));
    }
}

#[tokio::test]
async fn a_polite_end_lets_the_program_finish() {
    let launcher = launcher_with(SandboxKind::None);
    let folder = tempfile::tempdir().expect("a folder");
    let done = folder.path().join("done");
    let mut child = launcher.spawn(shell(&format!("cat; touch {}", done.display()))).await.expect("it starts");
    child.end(Duration::from_secs(20)).await;
    assert!(done.exists());
    let marker = marker();
    let mut deaf = launcher.spawn(shell(&format!("sleep {marker}"))).await.expect("it starts");
    deaf.end(Duration::from_millis(50)).await;
    assert!(alive(&marker).is_empty());
}

#[test]
fn a_fork_bomb_is_bounded_and_ended() {
    for mut server in [Server::start(), Server::start_as_plain_user()] {
        for sandbox in sandboxes() {
            let marker = marker();
            let script = format!("f() {{ f | f & }}; f; sleep {marker}");
            let request = json!({"do": "hold", "sandbox": sandbox, "script": script, "max_processes": 32});
            assert!(server.ask(&request)["error"].is_null());
            // Where the kernel keeps the limit it stays small; otherwise it ends as soon as it is seen.
            until("it has grown or ended", || alive(&marker).len() >= 16 || alive(&marker).is_empty());
            let answer = server.ask(&json!({"do": "kill"}));
            assert!(["ProcessLimit", "Signal(9)"].contains(&answer["exit"].as_str().expect("it ended")), "{answer}");
            assert_eq!(alive(&marker), Vec::<u32>::new(), "{sandbox:?}");
        }
    }
}

#[test]
fn nothing_outlives_a_server_that_is_killed() {
    for sandbox in sandboxes() {
        let mut server = Server::start();
        let markers: Vec<String> = FUGITIVES.iter().map(|_| marker()).collect();
        for (script, marker) in FUGITIVES.iter().zip(&markers) {
            let answer = server.ask(&json!({"do": "hold", "sandbox": sandbox, "script": script.replace('M', marker)}));
            assert!(answer["error"].is_null(), "{answer}");
            until("a sleeper runs", || alive(marker).iter().any(|pid| name_of(*pid) == "sleep"));
        }
        let everything = descendants(server.pid().unsigned_abs());
        assert!(everything.len() > 10, "{everything:?}");
        server.kill();
        until("the sleepers are gone", || markers.iter().all(|marker| alive(marker).is_empty()));
        until("helper and supervisors are gone", || !everything.iter().any(|pid| name_of(*pid) == "tool-launcher"));
    }
}

#[test]
fn a_lost_helper_is_replaced_and_its_trees_go_on() {
    for sandbox in sandboxes() {
        let mut server = Server::start();
        let markers = [marker(), marker()];
        let hold = |server: &mut Server, marker: &str| {
            let answer =
                server.ask(&json!({"do": "hold", "sandbox": sandbox, "script": format!("sleep {marker} & sleep {marker}")}));
            assert!(answer["error"].is_null(), "{answer}");
            until("it sleeps", || alive(marker).len() >= 2);
        };
        hold(&mut server, &markers[0]);
        let helper = helper_of(&server);
        kill(helper);
        until("the server has reaped its helper", || !std::path::Path::new(&format!("/proc/{helper}")).exists());
        hold(&mut server, &markers[1]);
        assert_ne!(helper_of(&server), helper);
        assert!(!alive(&markers[0]).is_empty(), "its supervisor lives, and the server still holds it");
        server.kill();
        until("all are gone", || markers.iter().all(|marker| alive(marker).is_empty()));
    }
}

#[test]
fn a_lost_supervisor_takes_its_tree_along() {
    for sandbox in sandboxes() {
        let mut server = Server::start();
        let marker = marker();
        let script = FUGITIVES[4].replace('M', &marker);
        server.ask(&json!({"do": "hold", "sandbox": sandbox, "script": script}));
        until("the sleepers run", || alive(&marker).iter().filter(|pid| name_of(**pid) == "sleep").count() >= 9);
        let helper = helper_of(&server);
        let supervisors: Vec<u32> = descendants(helper).into_iter().filter(|pid| name_of(*pid) == "tool-launcher").collect();
        supervisors.into_iter().for_each(kill);
        let answer = server.ask(&json!({"do": "wait"}));
        assert!(answer["error"].as_str().is_some_and(|error| error.contains("supervisor")), "{answer}");
        until("all are gone", || alive(&marker).is_empty());
        until("no zombie stays", || descendants(helper).iter().all(|pid| stat_field(*pid, 0).as_deref() != Some("Z")));
        // A supervisor that was kept ready is dead too, which may show only when it is to start something.
        until("another one starts", || {
            server.run(sandbox, "echo still here", &json!({})) == ("Code(0)".into(), "still here\n".into())
        });
    }
}

#[test]
fn five_hundred_rounds_leave_nothing() {
    for sandbox in sandboxes() {
        let mut server = Server::start();
        let round = |server: &mut Server| {
            server.run(sandbox, "sleep 0.001 & echo x", &json!({"memory_bytes": 100_000_000, "max_processes": 20}))
        };
        round(&mut server);
        let before = settled(&mut server);
        for _ in 0..500 {
            assert_eq!(round(&mut server).1, "x\n");
        }
        assert_eq!(settled(&mut server), before, "{sandbox:?}");
    }
}

#[test]
fn a_supervisor_that_is_stopped_ends_with_its_tree() {
    let mut server = Server::start();
    let marker = marker();
    let script = format!("kill -STOP $PPID; sleep {marker} & sleep {marker}");
    let mut answer = server.ask(&json!({"do": "hold", "sandbox": "none", "script": script}));
    // The stop may come before the supervisor could tell of the start.
    if answer["error"].is_null() {
        answer = server.ask(&json!({"do": "wait"}));
    }
    assert!(answer["error"].as_str().is_some_and(|error| error.contains("supervisor")), "{answer}");
    until("all are gone", || alive(&marker).is_empty());
}

/// Descriptors and descendants of a server, once what is ending has ended.
fn settled(server: &mut Server) -> serde_json::Value {
    let mut last = json!(null);
    let mut same = 0;
    until("it settles", || {
        let now = server.ask(&json!({"do": "count"}));
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same >= 20
    });
    last
}

fn helper_of(server: &Server) -> u32 {
    let parent = server.pid().to_string();
    let helpers = descendants(server.pid().unsigned_abs());
    let own = |pid: &u32| name_of(*pid) == "tool-launcher" && stat_field(*pid, 1).as_deref() == Some(&parent);
    helpers.into_iter().find(own).expect("it has one")
}

fn kill(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is there");
}

#[tokio::test]
async fn closing_ends_the_helper_at_once() {
    let launcher = launcher_with(SandboxKind::Builtin);
    let mut confined = shell("true");
    confined.policy = Some(Policy::default());
    crate::support::output(&launcher, confined).await;
    let helper = crate::support::output(&launcher, shell("cut -d' ' -f4 /proc/$PPID/stat")).await;
    let helper = std::path::Path::new("/proc").join(helper.trim());
    assert!(helper.exists(), "{}", helper.display());
    launcher.close().await;
    assert!(!helper.exists(), "ended and reaped");
    launcher.spawn(shell("true")).await.expect("a new helper starts");
}

#[tokio::test]
async fn a_helper_that_cannot_start_is_an_error() {
    let launcher = Launcher::new("/nonexistent/skillz".into(), SandboxKind::None);
    let error = launcher.spawn(shell("true")).await.expect_err("there is no helper");
    assert!(matches!(&error, ProcessError::Launcher(_)), "{error}");
    // A program that is no helper ends at once.
    let launcher = Launcher::new("/bin/true".into(), SandboxKind::None);
    assert!(launcher.spawn(shell("true")).await.is_err());
}
