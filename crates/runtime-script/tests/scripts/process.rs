//! Process scripts with the real interpreters (SPEC of the line protocol, plain printing, failures).

use std::sync::Arc;

use crate::support::{Bench, FakeHost, script, value, with_timeout};
use skillz_json::{Value, json};
use skillz_tool::ErrorKind;

/// Each language reads the request line and replies by the protocol with the sum of `a` and `b`.
const SPEAKERS: [(&str, &str); 7] = [
    (
        "python3",
        "import json, sys\nr = json.loads(sys.stdin.readline())\na = r['params']['arguments']\nprint(json.dumps({'jsonrpc': '2.0', 'id': r['id'], 'result': {'sum': a['a'] + a['b']}}))",
    ),
    (
        "node",
        "const lines = require('readline').createInterface({ input: process.stdin });\nlines.once('line', (line) => { const r = JSON.parse(line); const { a, b } = r.params.arguments; console.log(JSON.stringify({ jsonrpc: '2.0', id: r.id, result: { sum: a + b } })); });",
    ),
    (
        "bash",
        "read -r line # params\na=$(sed 's/.*\"a\":\\([0-9]*\\).*/\\1/' <<<\"$line\"); b=$(sed 's/.*\"b\":\\([0-9]*\\).*/\\1/' <<<\"$line\")\necho \"{\\\"jsonrpc\\\":\\\"2.0\\\",\\\"id\\\":1,\\\"result\\\":{\\\"sum\\\":$((a + b))}}\"",
    ),
    (
        "ruby",
        "require 'json'\nr = JSON.parse($stdin.gets)\na = r['params']['arguments']\nputs({jsonrpc: '2.0', id: r['id'], result: {sum: a['a'] + a['b']}}.to_json)",
    ),
    (
        "perl",
        "use JSON::PP;\nmy $r = decode_json(scalar <STDIN>);\nmy $a = $r->{params}{arguments};\nprint encode_json({jsonrpc => '2.0', id => $r->{id}, result => {sum => $a->{a} + $a->{b}}}), \"\\n\";",
    ),
    (
        "php",
        "<?php\n$r = json_decode(fgets(STDIN), true);\n$a = $r['params']['arguments'];\necho json_encode(['jsonrpc' => '2.0', 'id' => $r['id'], 'result' => ['sum' => $a['a'] + $a['b']]]), \"\\n\";",
    ),
    (
        "lua",
        "local line = io.read('l') -- params\nlocal a = line:match('\"a\":(%d+)')\nlocal b = line:match('\"b\":(%d+)')\nprint(string.format('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"sum\":%d}}', a + b))",
    ),
];

#[tokio::test]
async fn every_language_speaks_the_protocol() {
    let bench = Bench::new();
    for (interpreter, code) in SPEAKERS {
        assert_eq!(bench.once(interpreter, code, json!({"a": 20, "b": 22})).await, json!({"sum": 42}), "{interpreter}");
    }
}

#[tokio::test]
async fn plain_programs_are_tools_too() {
    let bench = Bench::new();
    for (interpreter, code, printed) in [
        ("bash", "read line; echo hello", "hello\n"),
        ("bash", "echo \"$SKILLZ_ARGUMENTS\"", "{\"text\":\"重要 ★ 🎉\"}\n"),
        ("python3", "print('重要 ★ 🎉')", "重要 ★ 🎉\n"),
        ("python3", "import sys, json\nprint(json.load(sys.stdin)['text'])", "重要 ★ 🎉\n"),
        ("bash", "cat > /dev/null; echo read to the end", "read to the end\n"),
        ("sh", "printf no-line-break", "no-line-break"),
        ("bash", "true", ""),
        ("node", "console.log('a'); console.log('b')", "a\nb\n"),
    ] {
        let outcome = bench.once(interpreter, code, json!({"text": "重要 ★ 🎉"})).await;
        assert_eq!(outcome, json!(printed), "{code}");
    }
}

#[tokio::test]
async fn programs_as_people_write_them_read_json_to_the_end() {
    let bench = Bench::new();
    for (interpreter, code) in [
        ("python3", "import json, sys\ndata = json.load(sys.stdin)\nprint(data['n'] * 2)"),
        ("python3", "import json\ndata = json.loads(input())\nprint(data['n'] * 2)"),
        ("python3", "import json, sys\nfor line in sys.stdin:\n    print(json.loads(line)['n'] * 2)"),
        ("python3", "import json, os\nprint(json.loads(os.environ['SKILLZ_ARGUMENTS'])['n'] * 2)"),
        ("bash", "n=$(sed 's/[^0-9]//g'); echo $((n * 2))"),
        ("bash", "IFS= read -r line\r\necho $(( $(tr -dc 0-9 <<<\"$line\") * 2 ))\r\n"),
        ("node", "let s = ''; process.stdin.on('data', (d) => (s += d)).on('end', () => console.log(JSON.parse(s).n * 2))"),
        ("node", "console.log(JSON.parse(require('fs').readFileSync(0, 'utf8')).n * 2)"),
        ("node", "for await (const part of process.stdin) console.log(JSON.parse(part).n * 2)"),
        ("ruby", "require 'json'\nputs JSON.parse($stdin.read)['n'] * 2"),
        ("perl", "local $/; my ($n) = <STDIN> =~ /(\\d+)/; print $n * 2, \"\\n\";"),
        ("php", "<?php echo json_decode(stream_get_contents(STDIN))->n * 2, \"\\n\";"),
        ("lua", "print(math.floor(io.read('a'):match('%d+') * 2))"),
    ] {
        assert_eq!(bench.once(interpreter, code, json!({"n": 21})).await, json!("42\n"), "{interpreter}: {code}");
    }
}

#[tokio::test]
async fn host_requests_go_back_and_forth() {
    let bench = Bench::new();
    let host = Arc::new(FakeHost::default());
    let code = r#"
import json, sys
request = json.loads(sys.stdin.readline())
def ask(id, method, params):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    reply = json.loads(sys.stdin.readline())
    assert reply["id"] == id, reply
    return reply.get("result", reply.get("error"))
print("a line for the log")
print(json.dumps({"jsonrpc": "2.0", "method": "log", "params": {"level": "warning", "message": "careful"}}))
print(json.dumps({"jsonrpc": "2.0", "method": "progress", "params": {"current": 1, "total": 2, "message": "half"}}))
results = [
    ask(7, "memory/set", {"key": "k", "value": [1]}), ask("eight", "memory/get", {"key": "k"}), ask(9, "tools/call", {"name": "echo", "arguments": {"x": 1}}),
    ask(10, "tools/call", {"name": "nothing"})["code"], ask(11, "no/such", {})["code"], ask(12, "memory/get", {"ky": 1})["code"],
    ask(13, "elicitation/create", {"message": "m", "requestedSchema": {}}), ask(14, "roots/list", None),
]
print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": results}))
"#;
    let tool = bench.register(script("asks", "python3", code)).await;
    let result = value(bench.run_with(&tool, json!({}), &host).await);
    let expected = json!([
        {"success": true}, {"found": true, "value": [1]}, {"output": {"x": 1}}, -32000, -32601, -32602,
        {"action": "accept", "content": {"answer": "m"}}, {"roots": [{"uri": "file:///project"}]},
    ]);
    assert_eq!(result, expected);
    let log = host.log_text();
    assert!(log.contains("a line for the log") && log.contains("careful"), "{log}");
    assert_eq!(host.progress.lock().unwrap()[0].message.as_deref(), Some("half"));
}

#[tokio::test]
async fn failures_say_what_the_script_said() {
    let bench = Bench::new();
    for (interpreter, code, kind, parts) in [
        ("bash", "echo why >&2; exit 3", ErrorKind::Failed, vec!["`fails` ended with exit code 3", "why"]),
        ("bash", "echo only stdout; exit 4", ErrorKind::Failed, vec!["exit code 4", "only stdout"]),
        ("bash", "kill -SEGV $$", ErrorKind::Failed, vec!["signal 11"]),
        (
            "python3",
            "def f():\n    raise ValueError('bad input')\nf()",
            ErrorKind::Failed,
            vec!["exit code 1", "ValueError: bad input"],
        ),
        ("bash", "no-such-command", ErrorKind::Failed, vec!["exit code 127", "no-such-command"]),
        (
            "bash",
            ": params; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1,\"message\":\"not today\",\"data\":[1]}}'",
            ErrorKind::Failed,
            vec!["`fails` failed: not today"],
        ),
    ] {
        let tool = bench.register(script("fails", interpreter, code)).await;
        let error = bench.run(&tool, json!({})).await.expect_err(code);
        assert_eq!(error.kind, kind, "{error}");
        for part in parts {
            assert!(error.text().contains(part), "{part} is not in: {error}");
        }
    }
}

#[tokio::test]
async fn time_output_and_leftovers_are_bounded() {
    let bench = Bench::new();
    let tool = bench.register(with_timeout(script("sleeps", "bash", "echo begun; sleep 300 & sleep 300"), 300)).await;
    let begun = std::time::Instant::now();
    let error = bench.run(&tool, json!({})).await.expect_err("sleeps");
    assert_eq!(error.kind, ErrorKind::TimedOut);
    assert!(error.text().contains("300 ms") && error.text().contains("begun"), "{error}");
    assert!(begun.elapsed() < std::time::Duration::from_secs(5));

    let mut noisy = script("noisy", "bash", "while true; do echo xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; done");
    noisy.manifest.limits.max_output_bytes = Some(100_000);
    let tool = bench.register(noisy).await;
    let error = bench.run(&tool, json!({})).await.expect_err("prints for ever");
    assert_eq!(error.kind, ErrorKind::LimitExceeded);
    assert!(error.text().contains("100000 bytes"), "{error}");

    let started = std::time::Instant::now();
    let reply = bench.once("bash", "sleep 300 & setsid sleep 301 & echo done", json!({})).await;
    assert_eq!(reply, json!("done\n"));
    assert!(started.elapsed() < std::time::Duration::from_secs(20), "what is left behind is not waited for");
}

#[tokio::test]
async fn floods_and_odd_bytes_lose_nothing() {
    let bench = Bench::new();
    let code = "import sys\nsys.stderr.write('e' * 1_000_000 + '\\nlast words\\n')\nprint('fine')";
    assert_eq!(bench.once("python3", code, json!({})).await, json!("fine\n"));

    let tool = bench.register(script("bytes", "bash", "printf 'a\\xff\\xfeb\\n'")).await;
    let outcome = bench.run(&tool, json!({})).await.unwrap();
    assert_eq!(outcome.output, skillz_tool::Output::Printed("a\u{fffd}\u{fffd}b\n".into()));
    assert!(outcome.notes[0].contains("not UTF-8"));

    let code = "import json # params\nprint(json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': 'x' * 5_000_000}))";
    assert_eq!(bench.once("python3", code, json!({})).await.as_str().map(str::len), Some(5_000_000));
}

#[tokio::test]
async fn stream_chunks_are_progress_and_the_result_where_none_is_sent() {
    let bench = Bench::new();
    let host = Arc::new(FakeHost::default());
    let code = r#"
for i in 0 1 2; do echo "{\"jsonrpc\":\"2.0\",\"method\":\"stream/chunk\",\"params\":{\"data\":\"part $i \",\"index\":$i,\"is_final\":false}}"; done
"#;
    let tool = bench.register(script("streams", "bash", code)).await;
    assert_eq!(value(bench.run_with(&tool, json!({}), &host).await), json!("part 0 part 1 part 2 "));
    let messages: Vec<Option<String>> = host.progress.lock().unwrap().iter().map(|progress| progress.message.clone()).collect();
    assert_eq!(messages, [Some("part 0 ".to_owned()), Some("part 1 ".to_owned()), Some("part 2 ".to_owned())]);
}

#[tokio::test]
async fn the_environment_is_clean_and_the_folder_private() {
    let bench = Bench::new();
    let code = "import os, json, sys\nr = json.loads(sys.stdin.readline()) # jsonrpc\nc = r['params']['context']\n\
                open('junk', 'w').write('x')\nopen(c['data_dir'] + '/kept', 'a').write('k')\n\
                print(json.dumps({'cwd': os.getcwd() == c['working_directory'], 'files': os.listdir('.'), 'env': sorted(os.environ), 'kept': len(open(c['data_dir'] + '/kept').read()), 'name': c['tool_name']}))";
    let tool = bench.register(script("looks", "python3", code)).await;
    for round in 1..3 {
        let text = value(bench.run(&tool, json!({})).await);
        let seen: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
        assert_eq!((&seen["cwd"], &seen["files"], &seen["name"]), (&json!(true), &json!(["junk"]), &json!("looks")));
        assert_eq!(seen["kept"], json!(round), "the data folder lasts");
        let names = seen["env"].to_string();
        assert!(!names.contains("CARGO") && !names.contains("SSL"), "{names}");
    }
}

#[tokio::test]
async fn a_reply_that_is_no_json_is_a_failure_that_says_so() {
    let bench = Bench::new();
    for result in ["{\"a\":NaN}", "{", "[1,]"] {
        let code = format!(": params; echo '{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{result}}}'");
        let tool = bench.register(script("broken", "bash", &code)).await;
        let error = bench.run(&tool, json!({})).await.unwrap_err();
        assert!(error.text().contains("not valid JSON"), "{result}: {error}");
    }
}
