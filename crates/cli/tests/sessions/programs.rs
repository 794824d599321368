//! `execute_code` as a client sees it: where it runs, what it may have, and that no call is made twice.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use skillz_test_support::{Era, Home, Run, wait_until_gone, with_argument};

use crate::{server, skillz};

const ADD: &str = "def run(a: int, b: int = 0) -> int:\n    return a + b\n";

fn python_tool(name: &str, code: &str) -> Value {
    json!({"name": name, "description": format!("The tool {name} of a test."), "code": code})
}

#[test]
fn a_program_runs_in_the_real_interpreter_and_says_so_only_where_it_does_not() {
    let home = Home::new();
    let mut confined = server(&home);
    for language in ["python", "javascript", "typescript"] {
        let answer = confined.value("execute_code", json!({"code": "1 + 1", "language": language}));
        assert_eq!(answer, json!({"result": 2, "stdout": "", "calls": []}), "{language}");
    }
    let answer = confined.value("execute_code", json!({"code": "1 + 1", "runtime": "embedded"}));
    assert_eq!(answer["runtime"], "embedded");
    drop(confined);
    let mut open = Run::new(skillz(), &home).variable("SKILLZ_SANDBOX", "none").connect(Era::NEWEST_HANDSHAKE);
    for language in ["python", "javascript", "typescript"] {
        let answer = open.value("execute_code", json!({"code": "1 + 1", "language": language}));
        assert_eq!(answer, json!({"result": 2, "stdout": "", "calls": [], "runtime": "embedded"}), "{language}");
        for fields in
            [json!({"runtime": "process"}), json!({"permissions": {"network": true}}), json!({"dependencies": ["idna"]})]
        {
            let mut arguments = json!({"code": "1 + 1", "language": language});
            arguments.as_object_mut().expect("an object").extend(fields.as_object().cloned().expect("an object"));
            let text = open.failure("execute_code", arguments);
            assert!(text.contains("Programs run in a sandbox only"), "{text}");
        }
    }
}

#[test]
fn permissions_of_a_program_are_those_of_a_tool() {
    let home = Home::new();
    std::fs::write(home.workspace().join("granted.txt"), "seen").expect("written");
    let folder = home.workspace().canonicalize().expect("real");
    let code = format!("open('{}/granted.txt').read()", folder.display());
    let asking = json!({"code": code, "permissions": {"fs": [{"path": folder}], "env": ["GREETING"]}});
    let mut allowing = Run::new(skillz(), &home).variable("GREETING", "hello").connect(Era::NEWEST_HANDSHAKE);
    assert_eq!(allowing.value("execute_code", asking.clone())["result"], "seen");
    let env = json!({"code": "import os\nos.environ.get('GREETING')", "permissions": {"env": ["GREETING"]}});
    assert_eq!(allowing.value("execute_code", env)["result"], "hello");
    let env = json!({"code": "import os\nos.environ.get('GREETING')"});
    assert_eq!(allowing.value("execute_code", env)["result"], Value::Null);
    assert!(allowing.failure("execute_code", json!({"code": code})).contains("FileNotFoundError"));
    let wrong = json!({"code": "1", "permissions": {"env": ["a b"]}});
    assert!(allowing.failure("execute_code", wrong).contains("`a b`"));
    drop(allowing);
    let strict = Home::new().with_config("[policy]\nnetwork = \"deny\"\nfs = \"deny\"\n");
    let mut refusing = server(&strict);
    assert!(refusing.failure("execute_code", asking).contains("policy"));
    let network = json!({"code": "1", "permissions": {"network": true}});
    assert!(refusing.failure("execute_code", network).contains("policy"));
}

/// Tools that count their own calls agree with the list of calls, whatever becomes of the programs.
#[test]
fn no_call_is_made_twice_or_left_out() {
    let home = Home::new();
    let mut server = server(&home);
    let counts = "import skillz, time\ndef run(how: str) -> int:\n    skillz.memory.set(str(time.time_ns()), 1)\n    if how == 'fail':\n        raise ValueError('as asked')\n    return 1\n";
    server.value("register_script", python_tool("counted", counts));
    let mut listed = 0;
    let mut state = 7_u64;
    let mut random = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).expect("small") % most
    };
    let lines = [
        "counted(how='ok')",
        "try:\n    counted(how='fail')\nexcept ToolError:\n    pass",
        "import asyncio\nasync def f():\n    return await asyncio.gather(counted(how='ok'), counted(how='ok'))\nasyncio.run(f())",
        "import threading\nthreading.Thread(target=lambda: counted(how='ok')).start()",
    ];
    let rounds: usize = std::env::var("SKILLZ_PROGRAMS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    for _ in 0..rounds {
        let code: Vec<&str> = (0..=random(3)).map(|_| lines[random(lines.len())]).collect();
        let answer = server.call("execute_code", json!({"code": code.join("\n"), "timeout": 20}));
        let calls = answer["structuredContent"]["calls"].as_array();
        listed += calls.unwrap_or_else(|| panic!("{code:?}: {answer}")).len();
    }
    let keys = server.value("memory", json!({"action": "list", "tool_name": "counted"}));
    assert_eq!(keys["keys"].as_array().map(Vec::len), Some(listed), "{keys}");
}

#[test]
fn a_program_that_is_given_up_takes_all_it_started_with_it() {
    let home = Home::new();
    let mut server = server(&home);
    server.value("register_script", python_tool("t_add", ADD));
    for (language, code) in [
        ("python", "import subprocess\nsubprocess.Popen(['sleep', '27182.91'])\nt_add(a=1)\nwhile True: pass"),
        ("javascript", "require('child_process').spawn('sleep', ['27182.91'], {detached: true});\nfor (;;) {}"),
    ] {
        let started = Instant::now();
        let text = server.failure("execute_code", json!({"code": code, "language": language, "timeout": 1}));
        assert!(text.contains("The program was stopped after its limit of 1 s"), "{text}");
        assert!(started.elapsed() < Duration::from_secs(15));
        assert_eq!(wait_until_gone(&with_argument("27182.91"), Duration::from_secs(20)), [0_u32; 0]);
    }
}
