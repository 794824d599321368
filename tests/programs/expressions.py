"""Random Python programs of expressions and small blocks: `programs(seed, count)` yields names and code, the same each time.

Every value in them is bounded by construction: exponents, shifts, counts of repetition and lengths of ranges are reduced modulo
a small number wherever they are computed. Nothing depends on the order of a set or on where an object lies.
"""

import random
import re

DEPTH = 3
FEWEST, MOST = 20, 40
WORDS = ["", "a", "abc", "Hello, World", "  padded\t", "ÄÖÜ straße", "snake_case_name", "1,2,,3", "42", "-7", "3.5", "x=1;y=2",
         "line\nbreak\r\n", "naïve café", "日本語", "TitleCase", "aaaa", "0x1F", "👍🏽 ok", "İi", "tab\tbed"]
INTEGERS = [0, 1, 2, 3, 5, 7, 10, 12, 16, 31, 64, 99, 100, 255, 256, 1000, 12345, 65535, 2**31, 2**53 + 1, 2**63 - 1, 10**20]
FLOATS = "0.0 0.5 1.5 2.5 0.05 0.1 0.3 2.675 1.005 3.14159 1e-7 1e16 123456.789 1e22 99.995 0.25 7.0".split()
FORMATS = ["", " d", *"""5 <8 >8 ^9 *^9 08 + , _ x #x b o e .2e .1f .2f .3f 10.2f g .3g % .1% s .2 d 5d <5d =+6 c n #b ,.2f
    012.3f""".split()]
TEMPLATES = "%d %5d %05d %+d %x %o %s %r %a %.2f %8.3f %e %g %c %-6s| %%%s %.1s %i %#x".split()
CHANGES = "upper lower title capitalize swapcase casefold strip lstrip rstrip expandtabs".split()
QUESTIONS = "isdigit isalpha isalnum isupper islower isspace istitle isidentifier isdecimal isnumeric isascii isprintable".split()
SORTINGS = ["", ", key=len", ", reverse=True", ", key=str.lower", ", key=len, reverse=True"]
PREAMBLE = """out = []


def plain(value):
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else repr(value)
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(item) for key, item in value.items()}
    return repr(value)
"""
# `$integer2` stands for an expression of that kind that goes so deep, `$<a|b>` for one of those texts.
BLOCKS = ["""
value = 0
for item in $integers3:
    if item % $<2|3|4|5> == 0:
        $<continue|break>
    value $<+=|-=|^=> item
else:
    value = [value, 'complete']
""", """
value = $integers2
value[$<-3|-1|0|1|3>:$<-2|0|2|5>] = $integers1
del value[$<0|-1|::2|1:>]
""", """
value = $table2
value.setdefault($text1, $integer1)
value[$text1] += 1
""", """
value, steps = abs($integer2) % 1000, 0
while value > 1 and steps < 50:
    value = value // 2 if value % 2 == 0 else 3 * value + 1
    steps += 1
value = [value, steps]
""", """
first, *middle, last = $integers2
value = [last, middle, first]
""", """
first, *middle, last = $texts2
value = {'first': first, 'middle': middle, 'last': last}
""", """
value = $integers2
value.$<sort()|reverse()|append(1)|pop()|pop(0)|remove(3)|insert(1, 7)|extend(range(3))|clear()>
""", """
value = []
numbers = iter($integers2)
for one in numbers:
    value.append((one, next(numbers, None)))
""", """
value = {}
for word in $texts2:
    value.setdefault(len(word), []).append(word)
value = sorted(value.items())
""", """
value = []
try:
    value.append($anything2)
    value.append($integer1 $<//|%> $<0|2|7>)
except $<ZeroDivisionError|ArithmeticError|ValueError|(TypeError, LookupError)>:
    value.append('caught')
else:
    value.append('else')
finally:
    value.append('finally')
""", """
def compute(a, b=$integer1, *rest, key=$text1):
    return [a, b, list(rest), key]
value = compute($<1|1, 2|*[1, 2, 3]|1, key=5|*range(4), key=None|b=1|>)
""", """
def produce(limit):
    for number in range(limit):
        if number == $<1|2|4>:
            return
        yield number * number
value = list(produce($integer1 % 8))
""", """
text = $text2
value = ''
for index, ch in enumerate(text):
    value += ch.upper() if index % 2 == $<0|1> else ch + '.'
""", """
match $anything2:
    case int() | float() as found if found:
        value = ['number', found]
    case str() as found:
        value = ['text', found]
    case [first, *others]:
        value = ['list', first, len(others)]
    case {'a': found, **others}:
        value = ['table', found, sorted(others)]
    case _:
        value = 'other'
"""]


class Writer:
    """Writes expressions, each kind by a method that is given how deep it may still go."""

    def __init__(self, chance):
        self.chance = chance
        self.names = {}

    def pick(self, depth, kind, leaves, branches):
        """One of the leaves where it goes no deeper, else mostly one of the branches; now and then a name of that kind."""
        named = self.names.get(kind, [])
        if named and depth < DEPTH and self.chance.random() < 0.25:
            return self.chance.choice(named)
        if depth <= 0 or self.chance.random() < 0.15:
            return self.chance.choice(leaves)()
        return self.chance.choice(branches)(depth - 1)

    def small(self, most):
        return str(self.chance.randint(0, most))

    def count(self, depth, most):
        """A whole number from 0 to less than `most`, however it is computed."""
        return self.small(most - 1) if self.chance.random() < 0.5 else f"({self.integer(depth)} % {most})"

    def integer(self, depth=DEPTH):
        c = self.chance
        return self.pick(depth, "integer", [
            lambda: str(c.choice(INTEGERS)),
            lambda: self.small(20),
            lambda: f"(-{c.choice(INTEGERS)})",
        ], [
            lambda d: f"({self.integer(d)} {c.choice(['+', '-', '*', '//', '%', '&', '|', '^'])} {self.integer(d)})",
            lambda d: f"({self.integer(d)} {c.choice(['+', '-', '*', '//', '%'])} {self.integer(d)})",
            lambda d: f"(({self.integer(d)} % 1000) ** {self.count(d, 6)})",
            lambda d: f"({self.integer(d)} {c.choice(['<<', '>>'])} {self.count(d, 40)})",
            lambda d: f"{c.choice(['-', '~', '+'])}({self.integer(d)})",
            lambda d: f"divmod({self.integer(d)}, {self.integer(d)})[{c.randint(0, 1)}]",
            lambda d: f"abs({self.integer(d)})",
            lambda d: f"len({c.choice([self.text, self.integers, self.texts, self.table])(d)})",
            lambda d: f"int({self.float(d)})",
            lambda d: f"int({self.text(d)})",
            lambda d: f"int({self.text(d)}, {c.choice([0, 2, 8, 10, 16, 36])})",
            lambda d: f"round({self.float(d)})",
            lambda d: f"round({self.integer(d)}, -{c.randint(0, 3)})",
            lambda d: f"sum({self.integers(d)})",
            lambda d: f"{c.choice(['min', 'max'])}({self.integer(d)}, {self.integer(d)})",
            lambda d: f"{c.choice(['min', 'max'])}({self.integers(d)})",
            lambda d: f"{self.integers(d)}[{c.randint(-3, 3)}]",
            lambda d: f"({self.integer(d)} if {self.truth(d)} else {self.integer(d)})",
            lambda d: f"({self.integer(d)}).bit_length()",
            lambda d: f"pow({self.integer(d)}, {self.count(d, 20)}, {c.choice([2, 7, 97, 1000, 10**9 + 7])})",
            lambda d: f"{self.text(d)}.{c.choice(['find', 'rfind', 'count', 'index'])}({self.text(d)})",
            lambda d: f"ord({self.text(d)}[:1] or 'q')",
            lambda d: f"{self.integers(d)}.{c.choice(['count', 'index'])}({self.integer(d)})",
            lambda d: f"{self.table(d)}.get({self.text(d)}, {self.integer(d)})",
        ])

    def float(self, depth=DEPTH):
        c = self.chance
        return self.pick(depth, "float", [
            lambda: c.choice(FLOATS),
            lambda: f"(-{c.choice(FLOATS)})",
            lambda: repr(round(c.uniform(-1000, 1000), c.randint(0, 6))),
        ], [
            lambda d: f"({self.float(d)} {c.choice(['+', '-', '*', '/', '//', '%'])} {self.float(d)})",
            lambda d: f"({self.float(d)} {c.choice(['+', '-', '*', '/'])} {self.integer(d)})",
            lambda d: f"({self.integer(d)} / {self.integer(d)})",
            lambda d: f"round({self.float(d)}, {c.randint(-2, 5)})",
            lambda d: f"float({c.choice([self.integer, self.text])(d)})",
            lambda d: f"abs({self.float(d)})",
            lambda d: f"divmod({self.float(d)}, {self.float(d)})[{c.randint(0, 1)}]",
            lambda d: f"(abs({self.float(d)}) ** {c.choice(['2', '0.5', '-1', '3'])})",
            lambda d: f"(({self.integer(d)} % 50 + 1) ** -{c.randint(1, 4)})",
            lambda d: f"sum([{self.float(d)}, {self.float(d)}, {self.integer(d)}], 0.0)",
            lambda d: f"{c.choice(['min', 'max'])}({self.float(d)}, {self.integer(d)})",
            lambda d: f"({self.float(d)} if {self.truth(d)} else {self.float(d)})",
        ])

    def text(self, depth=DEPTH):
        c = self.chance
        return self.pick(depth, "text", [
            lambda: repr(c.choice(WORDS)),
            lambda: repr("".join(c.choice("abcXYZ 01._-") for _ in range(c.randint(0, 8)))),
        ], [
            lambda d: f"({self.text(d)} + {self.text(d)})",
            lambda d: f"({self.text(d)} * {self.count(d, 4)})",
            lambda d: f"{self.text(d)}.{c.choice(CHANGES)}()",
            lambda d: f"{self.text(d)}.{c.choice(['strip', 'lstrip', 'rstrip', 'removeprefix', 'removesuffix'])}({self.text(d)})",
            lambda d: f"{self.text(d)}.replace({self.text(d)}, {self.text(d)}, {c.randint(-1, 3)})",
            lambda d: f"{self.text(d)}.{c.choice(['center', 'ljust', 'rjust'])}({self.count(d, 15)}, {c.choice('*-. ')!r})",
            lambda d: f"{self.text(d)}.zfill({self.count(d, 12)})",
            lambda d: f"{self.text(d)}.join({self.texts(d)})",
            lambda d: f"{self.text(d)}{self.cut()}",
            lambda d: f"{self.text(d)}[{c.randint(-4, 4)}]",
            lambda d: f"{c.choice(['str', 'repr', 'ascii'])}({self.anything(d)})",
            lambda d: f"{c.choice(['bin', 'hex', 'oct'])}({self.integer(d)})",
            lambda d: f"chr(97 + {self.count(d, 26)})",
            lambda d: f"format({self.number(d)}, {c.choice(FORMATS)!r})",
            lambda d: f"format({self.text(d)}, {c.choice(FORMATS)!r})",
            lambda d: f"f'{{{self.name_of(d)}:{c.choice(FORMATS)}}}'",
            lambda d: f"f'<{{{self.name_of(d)}{c.choice(['!r', '!s', '!a', '='])}}}>'",
            lambda d: f"'{{}}/{{!r}}'.format({self.anything(d)}, {self.anything(d)})",
            lambda d: f"'{{:{c.choice(FORMATS)}}}'.format({self.number(d)})",
            lambda d: f"({c.choice(TEMPLATES)!r} % {c.choice([self.number, self.text])(d)})",
            lambda d: f"{self.text(d)}.{c.choice(['partition', 'rpartition'])}({self.text(d)})[{c.randint(0, 2)}]",
            lambda d: f"''.join({c.choice(['reversed', 'sorted'])}({self.text(d)}))",
            lambda d: f"{self.text(d)}.encode().{c.choice(['hex()', 'decode()', 'decode(errors=None)'])}",
            lambda d: f"{self.text(d)}.encode().decode({c.choice(['latin-1', 'ascii', 'utf-8'])!r}, 'replace')",
        ])

    def name_of(self, depth):
        """What may stand in an f-string between single quotes."""
        names = [name for kind in self.names.values() for name in kind]
        return self.chance.choice(names) if names else self.small(1000)

    def cut(self):
        c = self.chance
        start, stop = ("" if c.random() < 0.4 else str(c.randint(-6, 6)) for _ in range(2))
        step = c.choice(["", "", "", ":2", ":-1", ":-2", ":3", ":"])
        return f"[{start}:{stop}{step}]"

    def number(self, depth=DEPTH):
        return self.chance.choice([self.integer, self.float])(depth)

    def anything(self, depth=DEPTH):
        kinds = [self.integer, self.float, self.text, self.truth, self.integers, self.texts, self.table, self.odd]
        return self.chance.choice(kinds)(depth)

    def odd(self, depth):
        c = self.chance
        return c.choice([
            lambda: "None",
            lambda: f"({self.integer(depth - 1)}, {self.text(depth - 1)})",
            lambda: f"({self.float(depth - 1)},)",
            lambda: f"range({c.randint(-3, 3)}, {c.randint(0, 9)}, {c.choice([1, 2, -1])})",
            lambda: f"{self.text(depth - 1)}.encode()",
            lambda: f"sorted(set({self.integers(depth - 1)}) {c.choice('&|-^')} set({self.integers(depth - 1)}))",
            lambda: f"sorted({self.texts(depth - 1)} + {self.integers(depth - 1)})",
            lambda: f"complex({c.randint(-3, 3)}, {c.randint(-3, 3)}) * {self.small(4)}",
            lambda: f"type({self.anything(depth - 1)}).__name__",
            lambda: f"[] < {self.integers(depth - 1)}",
            lambda: f"[{self.integer(depth - 1)}, {self.text(depth - 1)}] < [{self.integer(depth - 1)}, {self.text(depth - 1)}]",
            lambda: f"{{{self.integer(0)}: {self.text(depth - 1)}, {self.float(0)}: {self.truth(0)}}}",
        ])()

    def truth(self, depth=DEPTH):
        c = self.chance
        compare = ["<", "<=", ">", ">=", "==", "!="]
        return self.pick(depth, "truth", [lambda: c.choice(["True", "False"])], [
            lambda d: f"({self.number(d)} {c.choice(compare)} {self.number(d)})",
            lambda d: f"({self.number(d)} {c.choice(compare)} {self.number(d)} {c.choice(compare)} {self.number(d)})",
            lambda d: f"({self.text(d)} {c.choice(compare)} {self.text(d)})",
            lambda d: f"({self.text(d)} {c.choice(['in', 'not in'])} {self.text(d)})",
            lambda d: f"({self.integer(d)} {c.choice(['in', 'not in'])} {self.integers(d)})",
            lambda d: f"({self.integers(d)} {c.choice(compare)} {self.integers(d)})",
            lambda d: f"({self.truth(d)} {c.choice(['and', 'or', '==', '^'])} {self.truth(d)})",
            lambda d: f"(not {self.anything(d)})",
            lambda d: f"bool({self.anything(d)})",
            lambda d: f"{c.choice(['any', 'all'])}({self.integers(d)})",
            lambda d: f"{self.text(d)}.{c.choice(QUESTIONS)}()",
            lambda d: f"{self.text(d)}.{c.choice(['startswith', 'endswith'])}({self.text(d)})",
            lambda d: f"({self.anything(d)} is None)",
            lambda d: f"isinstance({self.anything(d)}, {c.choice(['int', 'float', 'str', 'bool', '(int, str)', 'list', 'dict'])})",
            lambda d: f"({self.number(d)} < {self.text(d)})",
        ])

    def integers(self, depth=DEPTH):
        c = self.chance
        return self.pick(depth, "integers", [
            lambda: str([c.randint(-9, 99) for _ in range(c.randint(0, 6))]),
            lambda: f"list(range({c.randint(0, 8)}))",
        ], [
            lambda d: f"[{', '.join(self.integer(d) for _ in range(c.randint(1, 3)))}]",
            lambda d: f"[x {c.choice(['+', '*', '-', '%', '//'])} {self.integer(d)} for x in {self.integers(d)}]",
            lambda d: f"[x for x in {self.integers(d)} if x % {c.randint(2, 4)} {c.choice(['==', '!='])} {c.randint(0, 1)}]",
            lambda d: f"[x * y for x in range({c.randint(0, 4)}) for y in {self.integers(d)}]",
            lambda d: f"sorted({self.integers(d)}{c.choice(['', ', reverse=True', ', key=abs', ', key=lambda v: (v % 3, -v)'])})",
            lambda d: f"({self.integers(d)} + {self.integers(d)})",
            lambda d: f"({self.integers(d)} * {self.count(d, 3)})",
            lambda d: f"{self.integers(d)}{self.cut()}",
            lambda d: f"list(range({c.randint(-5, 5)}, {self.count(d, 15)}, {c.choice([1, 2, 3, -1, -2])}))",
            lambda d: f"list(map(len, {self.texts(d)}))",
            lambda d: f"sorted(set({self.integers(d)}))",
            lambda d: f"list({self.table(d)}.values())",
            lambda d: f"[*{self.integers(d)}, *{self.integers(d)}]",
            lambda d: f"list(filter(None, {self.integers(d)}))",
            lambda d: f"list(reversed({self.integers(d)}))",
            lambda d: f"list({self.text(d)}.encode())",
            lambda d: f"[a - b for a, b in zip({self.integers(d)}, {self.integers(d)})]",
            lambda d: f"[i * v for i, v in enumerate({self.integers(d)}, {self.small(3)})]",
        ])

    def texts(self, depth=DEPTH):
        c = self.chance
        return self.pick(depth, "texts", [
            lambda: repr([c.choice(WORDS) for _ in range(c.randint(0, 4))]),
        ], [
            lambda d: f"{self.text(d)}.split({c.choice(['', '', repr(','), repr('a'), repr(' '), 'None, 1', repr('_') + ', 1'])})",
            lambda d: f"{self.text(d)}.rsplit({c.choice([repr(','), repr('a') + ', 1', 'None, 1'])})",
            lambda d: f"{self.text(d)}.splitlines({c.choice(['', 'True'])})",
            lambda d: f"list({self.text(d)})",
            lambda d: f"[{', '.join(self.text(d) for _ in range(c.randint(1, 3)))}]",
            lambda d: f"sorted({self.texts(d)}{c.choice(SORTINGS)})",
            lambda d: f"[w.{c.choice(['upper', 'strip', 'title', 'swapcase'])}() for w in {self.texts(d)} if w]",
            lambda d: f"[str(x) for x in {self.integers(d)}]",
            lambda d: f"list({self.table(d)})",
            lambda d: f"{self.texts(d)}{self.cut()}",
            lambda d: f"sorted(set({self.text(d)}))",
            lambda d: f"[a + b for a, b in zip({self.texts(d)}, {self.text(d)})]",
        ])

    def table(self, depth=DEPTH):
        c = self.chance
        return self.pick(depth, "table", [
            lambda: repr({c.choice("abcdef"): c.randint(-5, 50) for _ in range(c.randint(0, 4))}),
        ], [
            lambda d: f"{{{self.text(d)}: {self.integer(d)}, {self.text(d)}: {self.integer(d)}}}",
            lambda d: f"{{w: len(w) for w in {self.texts(d)}}}",
            lambda d: f"{{k: v {c.choice(['+', '*', '-'])} {self.integer(d)} for k, v in {self.table(d)}.items()}}",
            lambda d: f"({self.table(d)} | {self.table(d)})",
            lambda d: f"dict(zip({self.texts(d)}, {self.integers(d)}))",
            lambda d: f"{{**{self.table(d)}, 'z': {self.integer(d)}}}",
            lambda d: f"dict(sorted({self.table(d)}.items(), key=lambda kv: (kv[1], kv[0])))",
            lambda d: f"{{ch: {self.text(d)}.count(ch) for ch in {self.text(d)}}}",
            lambda d: f"dict.fromkeys({self.texts(d)}, {self.integer(d)})",
        ])

    def block(self):
        """Statements that leave their value in `value`."""
        def fill(match):
            kind, depth, options = match.groups()
            return self.chance.choice(options.split("|")) if options else getattr(self, kind)(int(depth))

        return re.sub(r"\$(?:(\w+)(\d)|<(.*?)>)", fill, self.chance.choice(BLOCKS)).strip().split("\n")

    def attempt(self, lines):
        """Adds what the lines leave in `value`, or the name of what they raise."""
        return ["try:", *(f"    {line}" for line in lines), "    out.append(value)",
                "except Exception as error:", "    out.append(type(error).__name__)"]

    def program(self):
        c = self.chance
        lines = [PREAMBLE]
        for letter, kind in zip("abcdef", ("integer", "float", "text", "integers", "texts", "table")):
            lines.append(f"{letter} = {getattr(self, kind)(0)}")
            self.names.setdefault(kind, []).append(letter)
        for _ in range(c.randint(FEWEST, MOST)):
            lines += self.attempt(self.block() if c.random() < 0.25 else [f"value = {self.anything()}"])
        return "\n".join([*lines, "plain(out)", ""])


def programs(seed, count):
    """The name and the code of each of `count` programs. One of them stays as it is whatever `count` is."""
    for number in range(count):
        yield f"expressions-{seed}-{number}", Writer(random.Random(f"{seed}:{number}")).program()
