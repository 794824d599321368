"""What real interpreters make of the programs beside this file: `reference.py [--check] python.txt|javascript.txt [SEED:COUNT]`.

Each program runs in a process of its own, in an empty working folder, and becomes one line of JSON: name, code and stdout, and
either the result, which is the value of its last expression, or the error, which is the last line of its traceback. With
SEED:COUNT the programs are those of `expressions.py` instead of the file's. With `--check` everything runs twice, the second
time with other hash seeds, another time zone and another language, and whatever is not as it should be is told.

In the files a program follows a line of `####` (Python) or `////` (JavaScript) and its name. A name that begins with `raises-`
promises an uncaught exception; all others end in an expression whose value JSON holds without loss. There is no parser for
JavaScript here, so the last statement of such a program must be an expression that begins at the last line that has something in
column 0, and nothing may follow it; one that needs several lines is indented from its second on. The statement before it ends
with a semicolon or a brace.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import expressions

AT_A_TIME = 2
# A program takes a fraction of a second; this is for a busy machine.
DEADLINE_SECONDS = 60
# What JSON would change, such as tuples, is a fault of the program.
RUN_PYTHON = r"""
import ast, json, math, sys, types

program, answer = sys.argv[1:]
sys.argv[:] = [program]
main = sys.modules["__main__"] = types.ModuleType("__main__")
tree = ast.parse(open(program, encoding="utf-8").read(), program)
last = tree.body[-1]
if isinstance(last, ast.Expr):
    target = ast.copy_location(ast.Name("<result>", ast.Store()), last)
    tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
code = compile(tree, program, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
# CO_COROUTINE
if code.co_flags & 0x80:
    import asyncio
    asyncio.run(eval(code, main.__dict__))
else:
    exec(code, main.__dict__)

def unfit(value):
    kind = type(value)
    if kind is list:
        return next(filter(None, map(unfit, value)), None)
    if kind is dict:
        return next(filter(None, map(unfit, value.values())), None) if all(type(key) is str for key in value) else "a key"
    if kind is float and not math.isfinite(value) or kind is str and value.encode("utf-8", "replace").decode() != value:
        return ascii(value)
    return None if kind in (str, int, float, bool, type(None)) else kind.__name__

if not isinstance(last, ast.Expr):
    outcome = {"unfit": "no expression"}
elif fault := unfit(main.__dict__["<result>"]):
    outcome = {"unfit": fault}
else:
    outcome = {"result": main.__dict__["<result>"]}
with open(answer, "w") as file:
    json.dump(outcome, file)
"""
RUN_JAVASCRIPT = r"""
import { writeFileSync } from "node:fs";

const [program, answer] = process.argv.splice(2);

function unfit(value) {
  if (value === null || ["boolean", "string"].includes(typeof value)) return undefined;
  if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0) ? undefined : String(value);
  if (Array.isArray(value)) return Array.from(value, unfit).find(Boolean);
  if (typeof value !== "object" || ![null, Object.prototype].includes(Object.getPrototypeOf(value))) return typeof value;
  return Object.values(value).map(unfit).find(Boolean);
}

let outcome;
try {
  await import(program);
  const fault = "result" in globalThis ? unfit(globalThis.result) : "no expression";
  outcome = fault ? { unfit: fault } : { result: globalThis.result };
} catch (error) {
  outcome = { error: String(error).split("\n").at(-1) };
}
writeFileSync(answer, JSON.stringify(outcome));
"""


def read_programs(path):
    """The name and the code of each program in a file."""
    parts = re.split(r"^(?:####|////) (.+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [(name.strip(), code.strip("\n") + "\n") for name, code in zip(parts[1::2], parts[2::2])]


def with_result(code):
    """JavaScript that keeps the value of its last statement."""
    starts = [match.start() for match in re.finditer(r"^\S", code, re.MULTILINE)]
    last = code[starts[-1]:].rstrip().removesuffix(";")
    return f"{code[:starts[-1]]}globalThis.result = (await ({last}));\n"


def run(name, code, is_python, environment):
    """One program, as it goes into a line of the output."""
    with tempfile.TemporaryDirectory(prefix="program-") as folder:
        work, answer = Path(folder) / "work", Path(folder) / "answer.json"
        work.mkdir()
        program = Path(folder) / ("program.py" if is_python else "program.mjs")
        if is_python:
            program.write_text(code, encoding="utf-8")
            command = [sys.executable, "-c", RUN_PYTHON, program, answer]
        else:
            runner = Path(folder) / "run.mjs"
            runner.write_text(RUN_JAVASCRIPT)
            program.write_text(code if name.startswith("raises-") else with_result(code), encoding="utf-8")
            command = ["node", runner, program, answer]
        done = subprocess.run(command, cwd=work, env=os.environ | {"PYTHONUTF8": "1"} | environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=DEADLINE_SECONDS)
        outcome = json.loads(answer.read_text()) if answer.exists() else {}
        lines = done.stderr.decode(errors="replace").strip().splitlines() or ["ended without a word"]
        if not outcome or "unfit" not in outcome and done.returncode != 0:
            outcome = {"error": lines[-1]}
        return {"name": name, "code": code} | outcome | {"stdout": done.stdout.decode()}


def run_all(programs, is_python, environment):
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield from pool.map(lambda program: run(*program, is_python, environment), programs)


def faults(programs, is_python):
    """What is wrong with the programs, and how many of them print and fail."""
    names = [name for name, _ in programs]
    found = [f"{name}: the name is taken" for name in sorted({name for name in names if names.count(name) > 1})]
    found += [f"{name}: not lower-case words with hyphens" for name in names if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)]
    first = run_all(programs, is_python, {"PYTHONHASHSEED": "1"})
    second = run_all(programs, is_python, {"PYTHONHASHSEED": "2", "TZ": "Asia/Kolkata", "LC_ALL": "de_DE.UTF-8"})
    printing = failing = 0
    for one, two in zip(first, second):
        name = one["name"]
        printing += one["stdout"] != ""
        failing += "error" in one
        if "unfit" in one:
            found.append(f"{name}: JSON would not hold its result: {one['unfit']}")
        elif ("error" in one) != name.startswith("raises-"):
            found.append(f"{name}: {one.get('error', 'no exception')}")
        if one != two:
            keys = [key for key in one | two if one.get(key) != two.get(key)]
            found += [f"{name}: {key} is {one.get(key)!r}, then {two.get(key)!r}" for key in keys]
    return found, printing, failing


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if not arguments or len(arguments) > 2:
        sys.exit(__doc__.splitlines()[0])
    is_python = "javascript" not in Path(arguments[0]).name
    if len(arguments) == 2:
        seed, count = map(int, arguments[1].split(":"))
        programs = list(expressions.programs(seed, count))
    else:
        programs = read_programs(Path(arguments[0]))
    if "--check" not in sys.argv:
        for line in run_all(programs, is_python, {}):
            if "unfit" in line:
                sys.exit(f"{line['name']}: JSON would not hold its result: {line['unfit']}")
            print(json.dumps(line), flush=True)
        return
    found, printing, failing = faults(programs, is_python)
    print("\n".join([*found, f"{len(programs)} programs, {printing} print, {failing} raise; {len(found)} faults"]))
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
