//! Nothing outlives the server, however it ends, and nothing stays behind while it runs.

use std::time::{Duration, Instant};

use serde_json::json;
use skillz_test_support::{DEADLINE, Home, descendants, wait_until_gone, with_argument, zombies};

use crate::{bash_tool, server};

fn wait_for_process(argument: &str) -> Vec<u32> {
    let end = Instant::now() + DEADLINE;
    loop {
        let pids = with_argument(argument);
        if !pids.is_empty() {
            return pids;
        }
        assert!(Instant::now() < end, "the script never started");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_killed_server_takes_everything_with_it() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("daemon", "setsid sleep 27182.81 & sleep 27182.81"));
    server.send("tools/call", json!({"name": "daemon", "arguments": {}}));
    let sleeping = wait_for_process("27182.81");
    let all = [sleeping, descendants(server.pid())].concat();
    server.kill();
    assert_eq!(wait_until_gone(&all, Duration::from_secs(20)), [0_u32; 0]);
}

#[test]
fn a_client_that_leaves_ends_its_calls_and_the_server() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("sleeps", "sleep 27182.82"));
    server.send("tools/call", json!({"name": "sleeps", "arguments": {}}));
    let all = [wait_for_process("27182.82"), descendants(server.pid())].concat();
    let (status, _) = server.close();
    assert!(status.success(), "{status}");
    assert_eq!(wait_until_gone(&all, Duration::from_secs(20)), [0_u32; 0]);
}

#[test]
fn no_process_of_a_call_outlives_it_and_no_zombie_stays() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", bash_tool("forks", "sleep 27182.83 & echo done"));
    for _ in 0..10 {
        assert_eq!(server.value("forks", json!({})), "done");
        assert_eq!(wait_until_gone(&with_argument("27182.83"), Duration::from_secs(20)), [0_u32; 0]);
    }
    let end = Instant::now() + DEADLINE;
    while !zombies(server.pid()).is_empty() {
        assert!(Instant::now() < end, "zombies stay: {:?}", zombies(server.pid()));
        std::thread::sleep(Duration::from_millis(20));
    }
}
