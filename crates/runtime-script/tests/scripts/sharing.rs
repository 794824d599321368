//! What one call of a Python function leaves for the next: nothing, unless the script asks for it.

use skillz_json::json;
use skillz_runtime_script::ScriptBounds;
use skillz_sandbox::SandboxKind;

use skillz_tool::Isolation;

use crate::support::{Bench, script, value};

#[tokio::test]
async fn a_second_call_finds_what_the_first_one_found() {
    // Unconfined calls see the machine's own temporary folders.
    let bench = Bench::with(ScriptBounds::default(), SandboxKind::Auto);
    for (index, code) in [
        "X = [1]\ndef run(): X.append(2); return len(X)",
        "X = {'a': [1]}\ndef run(): X['a'].append(2); X['b'] = 1; return [len(X), len(X['a'])]",
        "n = 0\ndef run():\n    global n\n    n += 1\n    return n",
        "def run(a: list = []): a.append(1); return len(a)",
        "class C:\n    n = 0\ndef run(): C.n += 1; return C.n",
        "import json\ndef run():\n    json.n = getattr(json, 'n', 0) + 1\n    return json.n",
        "import os\ndef run():\n    os.environ['N'] = os.environ.get('N', '') + 'x'\n    return os.environ['N']",
        "import os\ndef run():\n    open('left', 'a').write('x')\n    return [os.path.getsize('left'), os.listdir('.')]",
        "import itertools\nC = itertools.count()\ndef run(): return next(C)",
        "L = [0]\nA = L.append\nC = L.copy\ndef run():\n    A(1)\n    return C()",
        "SEEN = []\nremember = SEEN.append\ndef run():\n    remember(1)\n    return len(SEEN)",
        "import re\nN = re.compile('a').scanner('aaaa').search\ndef run(): return bool(N())",
        "import os\ndef run():\n    found = os.path.exists('/tmp/left')\n    open('/tmp/left', 'w').write('x')\n    return found",
        "import os\ndef run():\n    found = os.path.exists('/dev/shm/left')\n    open('/dev/shm/left', 'w').write('x')\n    return found",
        "def run():\n    run.n = getattr(run, 'n', 0) + 1\n    return run.n",
    ]
    .into_iter()
    .enumerate()
    {
        let tool = bench.register(script(&format!("leaves_{index}"), "python3", code)).await;
        let first = value(bench.run(&tool, json!({})).await);
        for _ in 0..3 {
            assert_eq!(value(bench.run(&tool, json!({})).await), first, "{code}");
        }
    }
}

#[tokio::test]
async fn a_failed_call_costs_only_itself() {
    let bench = Bench::new();
    let code = "def run(n: int):\n    print('said')\n    return 10 // n if n < 5 else [0] * (1 << 62) if n == 5 else run(n)";
    let tool = bench.register(script("shares", "python3", code)).await;
    for _ in 0..2 {
        assert_eq!(value(bench.run(&tool, json!({"n": 2})).await), json!(5));
        for (n, says) in [(0, "ZeroDivisionError"), (5, "MemoryError"), (6, "RecursionError")] {
            let error = bench.run(&tool, json!({"n": n})).await.unwrap_err();
            assert!(error.text().contains(says), "{error}");
        }
    }
}

#[tokio::test]
async fn what_a_call_does_to_its_parent_or_to_the_server_s_pipes_reaches_no_other() {
    let bench = Bench::new();
    let forged = r#"{"jsonrpc":"2.0","id":1,"result":"forged"}\n{"jsonrpc":"2.0","method":"ready"}\n"#;
    let code = format!(
        "import os, signal\nFORGED = b'{forged}'\ndef run(how: str = '') -> str:\n\
         \x20   if how == 'write':\n        for number in range(3, 40):\n            try: os.write(number, FORGED)\n            except OSError: pass\n\
         \x20   elif how == 'look': open('/proc/%d/mem' % os.getppid(), 'rb+')\n\
         \x20   elif how: os.kill(-1 if how == 'SIGURG' else os.getppid(), getattr(signal, how))\n    return 'well'"
    );
    let tool = bench.register(crate::support::with_timeout(script("attacks", "python3", &code), 3_000)).await;
    for how in ["SIGSTOP", "SIGKILL", "SIGTERM", "write", "look"] {
        let outcome = bench.run(&tool, json!({"how": how})).await;
        assert!(outcome.is_err() || how == "write" && value(outcome) == "well", "{how}");
        for _ in 0..3 {
            assert_eq!(value(bench.run(&tool, json!({})).await), "well", "after {how}");
        }
    }
}

#[tokio::test]
async fn only_generators_that_somebody_seeded_repeat_themselves() {
    let bench = Bench::new();
    let head = "import random\nfrom random import Random, random as draw\nclass Own(Random): pass\n";
    for (made, is_seeded) in [
        ("G = Random()", false),
        ("G = Own()", false),
        ("G = random", false),
        ("G = Random(None)", false),
        ("G = Random(1); G.seed()", false),
        ("class K: made = {'a': [Random()]}\nG = K.made['a'][0]", false),
        ("G = random.SystemRandom()", false),
        ("G = Random(1)", true),
        ("G = Random(); G.seed(2)", true),
        ("G = Random(); G.setstate(Random(3).getstate())", true),
        ("random.seed(4); G = random", true),
        ("G = Own(5)", true),
    ] {
        let tool = bench.register(script("draws", "python3", &format!("{head}{made}\ndef run(): return G.random()"))).await;
        let mut drawn = Vec::new();
        for _ in 0..3 {
            drawn.push(value(bench.run(&tool, json!({})).await).to_string());
        }
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn.len(), if is_seeded { 1 } else { 3 }, "{made}: {drawn:?}");
    }
}

#[tokio::test]
async fn calls_share_what_they_say_they_share() {
    let bench = Bench::new();
    for (interpreter, code, isolation, second) in [
        ("python3", "N = []\ndef run():\n    N.append(1)\n    return len(N)", None, 1),
        ("python3", "N = []\ndef run():\n    N.append(1)\n    return len(N)", Some(Isolation::Call), 1),
        ("python3", "N = []\nasync def run():\n    N.append(1)\n    return len(N)", Some(Isolation::Worker), 2),
        ("node", "let n = 0; export const run = () => ++n", None, 2),
        ("node", "let n = 0; export const run = () => ++n", Some(Isolation::Worker), 2),
        ("node", "let n = 0; export const run = () => ++n", Some(Isolation::Call), 1),
    ] {
        let mut counts = script("counts", interpreter, code);
        counts.manifest.isolation = isolation;
        let tool = bench.register(counts).await;
        assert_eq!(value(bench.run(&tool, json!({})).await), json!(1));
        assert_eq!(value(bench.run(&tool, json!({})).await), json!(second), "{interpreter} {isolation:?}");
    }
}
