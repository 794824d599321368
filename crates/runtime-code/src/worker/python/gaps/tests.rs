//! Which programs go elsewhere, and which stay.

use std::collections::HashSet;

use ruff_python_parser::parse_module;

use super::*;

fn reason(program: &str) -> Option<String> {
    let parsed = parse_module(program).expect(program);
    let tools = HashSet::from(["word_count"]);
    let statements = &parsed.syntax().body;
    find(statements, program, &Facts::of(statements, &tools), &tools).reason
}

#[test]
fn what_is_the_same_stays() {
    for program in [
        "word_count(text='a')['words']",
        "total = sum(word_count(text=t)['words'] for t in ['a', 'b'])",
        "', '.join(str(x) for x in [1])",
        "for i, (a, b) in enumerate(zip('ab', 'cd')): print(i, a, b)",
        "x = list(map(str, [1]))",
        "a, b = zip(*[(1, 2)])",
        "dict(zip('ab', [1, 2]))",
        "sorted({'a': 1}.items(), key=lambda pair: -pair[1])",
        "if any(x > 1 for x in [1, 2]): print('yes')",
        "all(w.startswith('a') and len(w) > 1 for w in ['ab'])",
        "[y for y in (x * 2 for x in range(3))]",
        "it = iter([1])\nnext(it)",
        "import itertools\nc = itertools.count()\nnext(c)",
        "import json\njson.dumps({'a': 1}, indent=2, sort_keys=True, ensure_ascii=False)",
        "from datetime import datetime, timedelta, timezone\nnow = datetime.now(timezone.utc)\nlater = now + timedelta(days=1)\nlater.strftime('%Y-%m-%d'), later.isoformat(), later.date(), later.weekday()",
        "import datetime\ndatetime.datetime.now().year\ndatetime.date.today().isoformat()",
        "from collections import Counter, defaultdict\nc = Counter(w for w in 'a b'.split())\nc.most_common(1)\nd = defaultdict(list)\nd['a'].append(1)",
        "import re\nre.split(r',\\s*', 'a, b')\nre.split('[(,]', 'a')\nre.split('(?:a|b)', 'c')",
        "try:\n    word_count(text=1)\nexcept Exception as e:\n    print('failed:', e, str(e), e.args)",
        "import asyncio\nawait asyncio.gather(*[word_count(text=t) for t in 'ab'])",
        "import asyncio\nasync def one(t):\n    return await word_count(text=t)\nawait asyncio.gather(*(one(t) for t in 'ab'))",
        "import asyncio\ntasks = [asyncio.create_task(word_count(text=t)) for t in 'ab']\nawait asyncio.gather(*tasks)",
        "class A:\n    def __init__(self): self.items = []\n    def size(self): return len(self.items)\nA().size()",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    count: int\nP(1).count",
        "a, b = {1}, {2}\na | b, a & b, a == b, a.issubset(b), 1 in a",
        "import os\nos.environ.get('X')",
        "dict.fromkeys([1])",
        "import math\nmath.floor(1.5)",
        "def f(x: 'int | None' = None) -> list[int]: return [x]\nf()",
        "isinstance(1, (int, float)), f'{1.5:.2f} {2!r}'",
    ] {
        assert_eq!(reason(program), None, "{program}");
    }
}

#[test]
fn what_differs_goes() {
    for (program, part) in [
        ("next(x for x in [1])", "`next`"),
        ("next(map(str, [1]))", "`next`"),
        ("g = enumerate('a')", "iterator that is kept"),
        ("self = {'a': filter(None, [1])}", "iterator that is kept"),
        ("print(zip('a', 'b'))\n1", "iterator that is kept"),
        ("def f(): return (x for x in [1])", "iterator that is kept"),
        ("import re\nm = re.finditer('a', 'a')", "iterator that is kept"),
        ("any(word_count(text=t) for t in 'ab')", "before its first item"),
        ("all(print(t) for t in 'ab')", "before its first item"),
        ("def f(x): return x\nany(f(x) for x in [1])", "before its first item"),
        ("any(map(f, [1]))", "before its first item"),
        ("1 in (f(x) for x in [1])", "before its first item"),
        ("import json\njson.dumps(1, cls=A)", "`json.dumps` has no `cls`"),
        ("from json import dumps\ndumps(1, default=str)", "`json.dumps` has no `default`"),
        ("from datetime import datetime\ndatetime.fromtimestamp(0)", "`datetime.fromtimestamp`"),
        ("import datetime as dt\ndt.datetime.combine(1, 2)", "`dt.datetime.combine`"),
        ("str.isdigit('1')", "`str.isdigit`"),
        ("from datetime import datetime\ndatetime.now", "`datetime.now`"),
        ("import datetime\nx.isocalendar()", "`isocalendar` of dates"),
        ("from datetime import datetime\nx.astimezone()", "`astimezone` of dates"),
        ("from datetime import datetime\nf'{x:%H.%f}'", "`%f`"),
        ("f.__name__", "`__name__`"),
        ("e.__cause__", "`__cause__`"),
        ("import re\nre.split('a(b)', 'c')", "`re.split`"),
        ("import re\nre.split(p, 'c')", "`re.split`"),
        ("{1} < {2}", "compare sets"),
        ("a = set()\na >= b", "compare sets"),
        ("sorted(d, key=d.get)", "hand on the method `get`"),
        ("x.bit_length()", "`bit_length`"),
        ("import asyncio\nawait asyncio.gather(f(), return_exceptions=True)", "`gather` takes no options"),
        ("import asyncio\nasyncio.create_task(f())", "no tasks but calls"),
        ("import asyncio\nt = asyncio.create_task(word_count(text='a'))\nt.cancel()", "have no `cancel`"),
        ("try:\n    f()\nexcept Exception as e:\n    e.data", "`data` of exceptions"),
        ("try:\n    f()\nexcept Exception as e:\n    type(e)", "no class of its own"),
        ("raise ToolError('a')", "no class of its own"),
        ("sum(x > 1 for x in [1, 2])", "truth values"),
        ("n = 0\nn += 'a' in 'ab'", "truth values"),
        ("isinstance(1, int | str)", "`|` for classes"),
    ] {
        let found = reason(program);
        assert!(found.as_deref().is_some_and(|found| found.contains(part)), "{program}: {found:?}");
    }
}
