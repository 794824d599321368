//! Imported servers that misbehave: they cost others nothing, and say what is wrong.

use std::{
    os::unix::fs::PermissionsExt,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use skillz_test_support::{Era, Home, Run};

use crate::{
    http::{HttpServer, message_in, session_headers, with_json},
    server, skillz,
    upstreams::{fake, state, wait_for_state},
};

#[test]
fn six_servers_of_which_five_misbehave() {
    let home = Home::new();
    let mut server = Run::new(skillz(), &home).variable("SKILLZ_EXPOSE", "all").connect(Era::NEWEST_HANDSHAKE);
    server.value("import_mcp", fake("good", &[]));
    let write = |name: &str, definition: Value| {
        let file = home.path().join(format!("servers/{name}.json"));
        std::fs::write(file, definition.to_string()).expect("a definition by hand");
    };
    write("exits", fake("exits", &["exit"]));
    write("silent", fake("silent", &["silent"]));
    write("crashes", fake("crashes", &[]));
    write("missing", json!({"url": "http://127.0.0.1:9/mcp"}));
    write("slow", fake("slow", &["slow_list=45"]));
    let exits = wait_for_state_of_any(&mut server, "exits", "down");
    assert!(exits["error"].as_str().expect("a reason").contains("exit code 3"), "{exits}");
    assert!(exits["stderr"].as_str().expect("last words").contains("no configuration"), "{exits}");
    wait_for_state_of_any(&mut server, "missing", "down");
    wait_for_state_of_any(&mut server, "crashes", "ready");
    wait_for_state_of_any(&mut server, "slow", "listing tools");
    let started = Instant::now();
    let names = server.tool_names();
    let took = started.elapsed();
    assert!(names.contains(&"good_echo".to_owned()) && took < Duration::from_millis(500), "{took:?}");
    assert_eq!(state(&mut server, "silent")["state"], "connecting");

    let failure = server.failure("crashes_crash", json!({}));
    assert!(failure.contains("exit code 7") && failure.contains("about to crash"), "{failure}");
    assert_eq!(server.value("crashes_echo", json!({"message": "back"})), "back", "it is started again");
    assert_eq!(server.value("good_echo", json!({"message": "still here"})), "still here");
    let again = wait_for_state(&mut server, "exits", |entry| entry["failures"].as_u64() >= Some(2));
    assert_eq!(again["state"], "down");
    let warnings = server.value("list_tools", json!({"detail": "names"}))["warnings"].take();
    assert!(warnings.to_string().contains("`exits` is down"), "{warnings}");
}

fn wait_for_state_of_any(server: &mut skillz_test_support::TestServer, name: &str, wanted: &str) -> Value {
    let end = Instant::now() + skillz_test_support::DEADLINE;
    loop {
        let listed = server.value("import_mcp", json!({"action": "list"}));
        let entry = listed["servers"].as_array().expect("servers").iter().find(|entry| entry["name"] == name);
        if let Some(entry) = entry.filter(|entry| entry["state"] == wanted) {
            return entry.clone();
        }
        assert!(Instant::now() < end, "`{name}` never was {wanted}: {listed}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_that_takes_its_time_delays_nothing() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("servers")).expect("a folder");
    std::fs::write(home.path().join("servers/late.json"), fake("late", &["wait=3"]).to_string()).expect("a definition");
    let mut server = Run::new(skillz(), &home).start();
    let started = Instant::now();
    server.greet(Era::NEWEST_HANDSHAKE);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert!(!server.tool_names().contains(&"late_echo".to_owned()));
    let unknown = server.request("tools/call", json!({"name": "late_echo", "arguments": {}}));
    let text = unknown["error"]["message"].as_str().expect("a text");
    assert!(text.contains("`late` has not told its tools yet"), "{text}");
    server.wait_for_method("notifications/tools/list_changed");
    wait_for_state(&mut server, "late", |entry| entry["state"] == "ready");
    assert_eq!(server.value("late_pid", json!({})).as_str().map(|text| text.contains("\"initialized\": 1")), Some(true));
}

#[test]
fn a_server_that_never_answers_a_call_costs_its_limit() {
    let home = Home::new();
    let mut definition = fake("fake", &[]);
    definition["limits"] = json!({"timeout_ms": 300});
    std::fs::create_dir_all(home.path().join("servers")).expect("a folder");
    std::fs::write(home.path().join("servers/fake.json"), definition.to_string()).expect("a definition");
    let mut server = server(&home);
    wait_for_state_of_any(&mut server, "fake", "ready");
    let started = Instant::now();
    let failure = server.failure("fake_slow", json!({"seconds": 60}));
    assert!(failure.contains("300 ms") && started.elapsed() < Duration::from_secs(5), "{failure}");
    let end = Instant::now() + skillz_test_support::DEADLINE;
    while server.value("fake_seen", json!({})) == "[]" {
        assert!(Instant::now() < end, "the server was never told");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn noise_and_lines_without_end_are_bounded() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("import_mcp", fake("noisy", &["banner", "stderr", "huge"]));
    assert_eq!(server.value("noisy_echo", json!({"message": "hi"})), "hi");
    let entry = state(&mut server, "noisy");
    let stderr = entry["stderr"].as_str().expect("last words");
    assert!(stderr.ends_with("last words") && stderr.len() <= 2_000, "{}", stderr.len());
    let failure = server.failure("noisy_big", json!({"bytes": 17_000_000}));
    assert!(failure.contains("longer than"), "{failure}");
    assert_eq!(server.value("noisy_echo", json!({"message": "again"})), "again");
}

#[test]
fn it_gets_harmless_variables_and_those_it_is_given() {
    let home = Home::new();
    let mut server = Run::new(skillz(), &home)
        .variable("AWS_SECRET", "aws-secret-value")
        .variable("SKILLZ_X", "skillz-x-value")
        .variable("SKILLZ_AUTH_TOKEN", "token-of-the-server")
        .variable("XDG_CONFIG_HOME", "/config")
        .connect(Era::NEWEST_HANDSHAKE);
    let mut arguments = fake("fake", &[]);
    arguments["env"] = json!({"GIVEN": "Bearer ${AWS_SECRET}", "PORT": 80, "NOT_THERE": "$SKILLZ_AUTH_TOKEN"});
    server.value("import_mcp", arguments);
    let text = server.value("fake_env", json!({}));
    let variables: Value = serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
    assert_eq!(variables["GIVEN"], "Bearer aws-secret-value");
    assert_eq!((&variables["PORT"], &variables["XDG_CONFIG_HOME"]), (&json!("80"), &json!("/config")));
    assert!(variables["PATH"].is_string() && variables["HOME"].is_string());
    assert_eq!((variables.get("AWS_SECRET"), variables.get("SKILLZ_X")), (None, None), "{variables}");
    assert_eq!(variables["NOT_THERE"], "$SKILLZ_AUTH_TOKEN", "the server's own tokens are for nobody");

    let file = home.path().join("servers/fake.json");
    let kept = std::fs::read_to_string(&file).expect("the definition");
    assert!(kept.contains("${AWS_SECRET}") && !kept.contains("aws-secret-value"));
    assert_eq!(std::fs::metadata(&file).expect("the definition").permissions().mode() & 0o777, 0o600);
    let entry = state(&mut server, "fake");
    assert_eq!(entry["env"], json!(["GIVEN", "NOT_THERE", "PORT"]));
    assert!(!entry.to_string().contains("aws-secret-value"));
    let (_, stderr) = server.close();
    assert!(!stderr.contains("aws-secret-value"));
}

#[test]
fn a_confined_server_sees_its_own_folder_and_nothing_of_the_home() {
    let home = Home::new();
    std::fs::write(home.workspace().join("secret.txt"), "secret").expect("a file");
    let mut server = server(&home);
    let mut arguments = fake("fake", &[home.path().to_str().expect("UTF-8")]);
    arguments["sandbox"] = json!(true);
    let added = server.value("import_mcp", arguments);
    assert_eq!((&added["state"], &added["sandbox"]), (&json!("ready"), &json!(true)), "{added}");
    let text = server.value("fake_env", json!({}));
    let variables: Value = serde_json::from_str(text.as_str().expect("a text")).expect("JSON");
    let own = variables["HOME"].as_str().expect("a home");
    assert!(own.ends_with("servers/fake") && std::fs::exists(own).expect("is told"), "{variables}");
    let note = added["note"].as_str().expect("it says what is not opened");
    assert!(note.contains(home.path().to_str().expect("UTF-8")), "{note}");
    assert_eq!(server.value("import_mcp", json!({"action": "remove", "name": "fake"})), json!({"removed": "fake"}));
    assert!(!std::fs::exists(own).expect("is told"), "its folder goes with it");
}

#[test]
fn what_cannot_work_is_refused_with_every_reason() {
    let home = Home::new();
    let mut server = server(&home);
    for (arguments, part) in [
        (json!({"name": "x"}), "neither `command`"),
        (json!({"name": "Bad Name", "command": "python3"}), "`bad_name` would do"),
        (json!({"name": "x", "command": "no-such-program-anywhere"}), "was not found"),
        (json!({"name": "x", "url": "nonsense"}), "no http or https address"),
        (json!({"name": "x", "url": "http://127.0.0.1:9", "headers": {"X-A": "b\nc"}}), "the header `X-A` cannot be sent"),
        (json!({"command": "python3"}), "needs the `name`"),
        (json!({"name": "x", "action": "remove"}), "There is no imported server `x`"),
        (json!({"name": "x", "action": "refresh"}), "There is no imported server `x`"),
    ] {
        let failure = server.failure("import_mcp", arguments);
        assert!(failure.contains(part), "{failure}");
    }
    assert_eq!(server.value("import_mcp", json!({"action": "list"})), json!({"servers": []}));
    server.value("import_mcp", fake("x", &[]));
    assert!(server.failure("import_mcp", fake("x", &[])).contains("overwrite: true"));
}

#[test]
fn a_call_whose_server_never_came_up_says_that_nothing_was_run() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("import_mcp", fake("fake", &["--api-key", "s3cret-key"]));
    let entry = state(&mut server, "fake");
    assert!(!entry.to_string().contains("s3cret-key") && entry["args"].to_string().contains("<hidden>"), "{entry}");
    let file = home.path().join("servers/fake.json");
    let mut definition: Value = serde_json::from_slice(&std::fs::read(&file).expect("the file")).expect("JSON");
    definition["args"].as_array_mut().expect("arguments").push(json!("silent"));
    definition["limits"] = json!({"timeout_ms": 300});
    std::fs::write(&file, definition.to_string()).expect("a change by hand");
    wait_for_state_of_any(&mut server, "fake", "connecting");
    let failure = server.failure("fake_echo", json!({"message": "hi"}));
    assert!(failure.contains("was not run") && failure.contains("300 ms"), "{failure}");

    server.value("import_mcp", {
        let mut arguments = fake("fake", &[]);
        arguments["overwrite"] = json!(true);
        arguments
    });
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).expect("the file")).expect("JSON");
    assert_eq!(kept["limits"], json!({"timeout_ms": 300}), "what was written by hand stays");
}

#[test]
fn a_question_that_may_be_another_clients_is_refused() {
    let home = Home::new();
    std::fs::create_dir_all(home.path().join("servers")).expect("a folder");
    std::fs::write(home.path().join("servers/fake.json"), fake("fake", &[]).to_string()).expect("a definition");
    let server = HttpServer::start(&home);
    let (one, other) = (server.open(), server.open());
    let call = |name: &str, arguments: Value| json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let answer = || {
        let answer = message_in(&server.post(&session_headers(&other), &call("fake_roots", json!({}))).2);
        answer["result"]["content"][0]["text"].as_str().map_or_else(|| answer.to_string(), str::to_owned)
    };
    let wait_for = |part: &str| {
        let end = Instant::now() + skillz_test_support::DEADLINE;
        loop {
            let text = answer();
            if text.contains(part) {
                return;
            }
            assert!(Instant::now() < end, "`{part}` never came: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    wait_for("\"roots\"");
    let slow = call("fake_slow", json!({"seconds": 60})).to_string();
    let _under_way = server.raw((server.head("POST", "/mcp", &with_json(&session_headers(&one)), slow.len()) + &slow).as_bytes());
    wait_for("cannot be told whose call it is");
}

#[test]
fn the_operators_command_line_is_bound_by_no_policy() {
    let home = Home::new().with_config("[policy]\nservers = \"deny\"\n");
    let script = skillz_test_support::upstream();
    let run = |arguments: &[&str]| skillz_test_support::run(skillz(), &home, arguments);
    let (code, _, stderr) = run(&["servers", "add", "x", "--", "python3", script.to_str().expect("UTF-8")]);
    assert_eq!(code, 0, "{stderr}");
    let mut server = server(&home);
    for action in ["remove", "refresh"] {
        let failure = server.failure("import_mcp", json!({"action": action, "name": "x"}));
        assert!(failure.contains("servers = \"deny\""), "{failure}");
    }
    assert_eq!(server.value("x_echo", json!({"message": "hi"})), "hi");
    assert_eq!(run(&["servers", "remove", "x"]).0, 0);
}

#[test]
fn the_operator_decides() {
    for (config, part) in [("[policy]\nservers = \"deny\"\n", "servers"), ("[policy]\nservers = \"ask\"\n", "declined")] {
        let home = Home::new().with_config(config);
        let mut server = server(&home);
        let id = server.send("tools/call", json!({"name": "import_mcp", "arguments": fake("x", &[])}));
        if part == "declined" {
            let asked = server.wait_for_method("elicitation/create");
            let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}});
            server.send_line(answer.to_string().as_bytes());
        }
        let result = server.answer(id)["result"].take();
        assert_eq!(result["isError"], true);
        assert!(result["content"][0]["text"].as_str().expect("a text").contains(part), "{result}");
        assert!(!home.path().join("servers/x.json").exists());
    }
}
