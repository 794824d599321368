"""Which modules let calls share a process: prints what was judged wrongly. Usage: sharing.py FOLDER_OF_THE_KITS"""

import importlib.util
import os
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import _skillz_pure

HARMLESS = [
    "def run(text: str) -> dict:\n    return {'words': len(text.split())}",
    "import json, math\nfrom typing import Optional\nRATES = {'usd': 1.1}\ndef run(a: float, b: Optional[str] = None):\n"
    "    '''Says something.'''\n    return json.dumps({'a': math.sqrt(a), 'r': RATES})",
    "import re\nP = re.compile('a+')\nfrom dataclasses import dataclass\n@dataclass\nclass A:\n    x: int\n    def m(self):\n"
    "        return self.x + 1\ndef run(a: int): return A(a).m()",
    "from collections import Counter\nfrom urllib.parse import quote\nimport datetime as dt\n"
    "def run(t='a'): return [Counter(t), quote(t), dt.datetime.now().isoformat(), dt.timedelta(days=1)]",
    "from enum import Enum\nclass C(Enum):\n    A = 'a'\ndef run(c: C): return c.value",
    "from typing import Dict, List, Tuple\nM = List[Dict[str, Tuple[int, ...]]]\ndef run(m: M = None): return m",
    "import hashlib, base64\nX = [1, [2]]\ndef helper(x): return lambda y=x: y\ndef run(): X.append(1); return hashlib.sha256(b'a').hexdigest()",
    "class C:\n    def __init__(self, a): self.a = a\n    def get(self): return self.a\ndef run(x: int): return C(x).get()",
    "from decimal import Decimal, ROUND_HALF_UP\nVAT = Decimal('0.19')\ndef run(x: str): return str(Decimal(x) * VAT)",
]
HARMFUL = [
    "n = 0\ndef run():\n    global n\n    n += 1\n    return n",
    "def run(a=[]): a.append(1); return len(a)",
    "def run(*, a={}): a[len(a)] = 1; return len(a)",
    "def run(): run.n = getattr(run, 'n', 0) + 1; return run.n",
    "def run(): run.n = 1",
    "import os\ndef run(): os.environ['a'] = '1'",
    "import json\ndef run(): json.x = 1",
    "import json\ndef run():\n    j = json\n    j.x = 1",
    "import json as j\ndef run(m=1): return [j]",
    "import sys\ndef run(): return 1",
    "import html.entities\ndef run(): return 1",
    "import random\ndef run(): random.seed(1); return random.random()",
    "from functools import lru_cache\n@lru_cache\ndef run(): return 1",
    "class C:\n    n = []\ndef run(): C.n.append(1); return len(C.n)",
    "class C:\n    n = 0\ndef run(): C.n += 1; return C.n",
    "class C:\n    n = 0\n    def m(self): type(self).n += 1\ndef run(): C().m()",
    "class C:\n    @classmethod\n    def m(self): self.n = 1\ndef run(): C.m()",
    "class C:\n    def m(self): self.n = 1\ndef run(): C.m(run)",
    "class C:\n    def __init__(self):\n        self = C\n        self.n = 1\ndef run(): C()",
    "class C:\n    def __init__(self):\n        def g(self): self.n = 1\n        g(C)\ndef run(): C()",
    "class C:\n    def __init__(self):\n        try: 1 / 0\n        except Exception as self: self.n = 1\ndef run(): C()",
    "class C:\n    def __init__(self):\n        for self in [C]: self.n = 1\ndef run(): C()",
    "class M(type):\n    def m(self): self.n = 1\nclass C(metaclass=M): pass\ndef run(): C.m()",
    "class C:\n    def __init__(self): self.n = 0\nX = C()\ndef run(): return X.n",
    "import itertools\nc = itertools.count()\ndef run(): return next(c)",
    "def g():\n    yield 1\nG = g()\ndef run(): return next(G)",
    "def make():\n    n = [0]\n    def f(): n[0] += 1; return n[0]\n    return f\nF = make()\ndef run(): return F()",
    "FS = [lambda: acc.append(1) for acc in [[]]]\ndef run(): FS[0]()",
    "f = lambda a=[]: a.append(1) or len(a)\ndef run(): return f()",
    "from collections import defaultdict\nD = defaultdict(list)\ndef run(): D['a'].append(1); return len(D['a'])",
    "from operator import attrgetter\ndef run(): attrgetter('__dict__')(run)['n'] = 1",
    "def run(): print.__self__.x = 1",
    "def run(): __builtins__['x'] = 1",
    "import json\ndef run(): json.decoder.X = 1",
    "import json\ndef run(): return json.decoder",
    "import string\ndef run(): vars(string)['x'] = 1",
    "D = {}\ndef f(d=D): d['a'] = 1; return len(d)\ndef run(): return f()",
    "async def run(): return 1",
    "import skillz\ndef run(): return 1",
    "import threading\ndef run(): return 1",
    "def run(): open('a', 'w').write('x')",
    "try:\n    import json\nexcept ImportError:\n    pass\ndef run(): return 1",
    "def run():\n    import json\n    return 1",
    "def run():\n    g = (x for x in [1])\n    g.gi_frame.f_globals['n'] = 1",
    "L = [0]\nA = L.append\nC = L.copy\ndef run(s=''): A(s); return C()",
    "D = {}\nA = {'a': D.update}\nC = (D.items,)\ndef run(): return 1",
    "def mk():\n    l = []\n    return l.append, l.copy\na, b = mk()\ndef run(): a(1); return b()",
    "M = type('M', (), {'x': []})\ndef run(): M.x.append(1); return len(M.x)",
    "import re\nN = re.compile('a').scanner('aaaa').search\ndef run(): return bool(N())",
    "import re\nN = re.compile('a').scanner('aaaa')\ndef run(): return bool(N.search())",
    "import typing\ndef f(a: [0]): pass\ndef run(): typing.get_type_hints(f)['a'].append(1)",
    "from typing import get_type_hints\ndef f(a: [0]): pass\ndef run(): return 1",
    "from enum import IntFlag\nclass F(IntFlag):\n    A = 1\ndef run(s=0): F(s)",
    "import enum\nclass F(enum.Flag):\n    A = 1\ndef run(s=0): F(s)",
    "import re\ndef run(n=0): re.RegexFlag(n)",
    "from enum import Enum\nclass F(Enum):\n    A = 1\ndef run(): F._value2member_map_['x'] = 1",
    "from enum import Enum\nclass F(Enum):\n    A = 1\ndef run(): return '{0._value2member_map_}'.format(F)",
    "from collections import namedtuple\nP = namedtuple('P', 'x', defaults=[[]])\ndef run(): P().x.append(1)",
    "import dataclasses\nM = dataclasses.make_dataclass('M', [], namespace={'x': []})\ndef run(): M.x.append(1)",
    "def mk():\n    return dict\nclass C(mk()): pass\ndef run(): return 1",
    "from textwrap import re as r\ndef run(): r.purge()",
    "import hashlib\ndef run(): hashlib.algorithms_available.add('x')",
    "from re import _cache\ndef run(): _cache.clear()",
    "from functools import partial\nP = partial([].append)\ndef run(): P(1)",
    "def names(self): return self.f_globals\ndef run(): return 1",
    "def frame(self): return self.gi_frame\ndef run(): return 1",
    "from enum import Enum\nclass F(Enum):\n    A = 1\n    def m(self): self._member_map_['x'] = 1\ndef run(): F.A.m()",
    "from typing import NamedTuple\nclass P(NamedTuple):\n    x: int = 1\n    def m(self): self._field_defaults['y'] = 1\ndef run(): P().m()",
    "import string\ndef run(): string.Formatter().get_field('0.__globals__', (run,), {})[0]['x'] = 1",
    "from string import Formatter\ndef run(): return 1",
    "import textwrap\ndef run(): textwrap.TextWrapper.unicode_whitespace_trans[1] = 'x'",
    "X = list(range(5000))\ndef run(): return len(X)",
]

if sys.version_info >= (3, 10):
    HARMFUL.append("def run():\n    match run:\n        case object(__globals__=g): g['seen'] = 1")


def examine(source):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tool.py")
        with open(path, "w") as file:
            file.write(source)
        spec = importlib.util.spec_from_file_location("tool", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return _skillz_pure.examine(path, module), module


for source in HARMLESS:
    if examine(source)[0] is None:
        print("is harmless:", source)
for source in HARMFUL:
    if examine(source)[0] is not None:
        print("is harmful:", source)

shared, module = examine("x = [1]\ny = (x,)\nz = {'a': {'b': [1]}}\ndef run(): pass\n")
module.x.append(2)
module.y[0].append(3)
module.z["a"]["b"].clear()
shared.make_anew()
if (module.x, module.y, module.z) != ([1], ([1],), {"a": {"b": [1]}}) or module.y[0] is not module.x:
    print("was not made anew:", module.x, module.y, module.z)
