//! What one call of a Python function leaves for the next: nothing, unless the script asks for it.

use skillz_json::json;
use skillz_runtime_script::ScriptBounds;
use skillz_sandbox::SandboxKind;

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
async fn calls_that_share_a_process_fail_and_go_on_alone() {
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
