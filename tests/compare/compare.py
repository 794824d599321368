"""Times warm calls over stdio: each server as a process of its own, the same raw client, turn by turn."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from piped import Piped  # noqa: E402

ROUNDS = 400
# The first calls of each are not counted.
WARM_UP = 20
# The imports are what tools have that people write: they make a process heavy to copy.
FUNCTION = """import asyncio, decimal, http.client, json, logging

def NAME(text: str) -> dict:
    return {'words': len(text.split())}
"""
JAVASCRIPT = "export function run({ message }) { return `Echo: ${message}`; }"
# Programs that make three calls of a WASM tool.
PYTHON = "[copy(n=n) for n in range(3)]"
NODE = "[await copy({n: 0}), await copy({n: 1}), await copy({n: 2})]"
ECHO = Path(__file__).resolve().parents[2] / "crates" / "cli" / "tests" / "sessions" / "echo.wat"


class Server(Piped):
    """A server whose calls must work, and are timed."""

    def request(self, method, params):
        message = super().request(method, params)
        if "error" in message or message["result"].get("isError"):
            sys.exit(f"{method}: {message}")
        return message["result"]

    def time(self, method, params):
        start = time.perf_counter()
        self.request(method, params)
        return (time.perf_counter() - start) * 1000


def call(server, name, arguments):
    return server, "tools/call", {"name": name, "arguments": arguments}


def a_program(language, code):
    return {"name": "execute_code", "arguments": {"language": language, "code": code, "runtime": "process"}}


def medians(ours, other, pause=0.0):
    """Times both in turn, so that whatever else the machine does falls on both alike."""
    times = ([], [])
    for turn in range(ROUNDS if pause == 0 else ROUNDS // 4):
        for list_of_times, (server, method, params) in zip(times, (ours, other)):
            time.sleep(pause)
            took = server.time(method, params)
            if turn >= WARM_UP:
                list_of_times.append(took)
    return [statistics.median(list_of_times) for list_of_times in times]


class Bare:
    """An interpreter that is started by hand, does nothing and ends; in the place of a server."""

    def time(self, program, _):
        start = time.perf_counter()
        subprocess.run([program, "-e" if program == "node" else "-c", "0"], check=True)
        return (time.perf_counter() - start) * 1000


def all_at_once(skillz, count):
    """Milliseconds until so many programs at once have ended, and so many bare interpreters."""
    ours = []
    for _ in range(7):
        start = time.perf_counter()
        under_way = {skillz.send("tools/call", a_program("python", PYTHON)) for _ in range(count)}
        while under_way:
            under_way.remove(skillz.answer(under_way)["id"])
        ours.append((time.perf_counter() - start) * 1000)
    bare = []
    for _ in range(7):
        start = time.perf_counter()
        for process in [subprocess.Popen([sys.executable, "-c", "0"]) for _ in range(count)]:
            process.wait()
        bare.append((time.perf_counter() - start) * 1000)
    return statistics.median(ours), statistics.median(bare)


class Table:
    """Prints rows and remembers whether every promise was kept."""

    def __init__(self):
        self.broken = []
        print("| warm call | Skillz | beside it | ratio | promised |\n|---|---|---|---|---|", flush=True)

    def row(self, title, ours, other, pause=0.0, **promises):
        self.add(title, *medians(ours, other, pause), **promises)

    def add(self, title, mine, theirs, most=None, added=None, within=None):
        """`most` bounds the ratio, `added` the milliseconds on top of the other, `within` the milliseconds."""
        kept = (most is None or mine <= most * theirs) and (added is None or mine <= theirs + added) and (within is None or mine <= within)
        promises = (most and f"at most {most}", added and f"at most {added} ms more", within and f"at most {within} ms")
        promised = ", ".join(promise for promise in promises if promise)
        if not kept:
            self.broken.append(title)
        print(f"| {title} | {mine:.2f} ms | {theirs:.2f} ms | {mine / theirs:.2f} | {promised}{'' if kept else ', NOT KEPT'} |", flush=True)


def tools(skillz):
    python = FUNCTION.replace("NAME", "run")
    register = "register_script", {"description": "Compared"}
    for maker, arguments in (
        (register, {"name": "each_alone", "code": python, "interpreter": "python3", "isolation": "call"}),
        (register, {"name": "all_in_one", "code": python, "interpreter": "python3", "isolation": "worker"}),
        (register, {"name": "echo_text", "code": JAVASCRIPT, "interpreter": "node"}),
        (("build_tool", {"description": "Compared"}), {"name": "copy", "wat": ECHO.read_text()}),
    ):
        skillz.request("tools/call", {"name": maker[0], "arguments": maker[1] | arguments})


def main():
    binary, others = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as home:
        skillz = Server([binary], {"SKILLZ_HOME": home})
        tools(skillz)
        program = Path(home) / "fast.py"
        served = FUNCTION.replace("def NAME", "@mcp.tool\ndef count_words")
        program.write_text(f"from fastmcp import FastMCP\nmcp = FastMCP('x')\n{served}\nmcp.run(show_banner=False)\n")
        fast = Server([others / "python/bin/python", program])
        everything = Server(["node", others / "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js", "stdio"])
        table, words = Table(), {"text": "a b c"}
        theirs = call(fast, "count_words", words)
        table.row("Python function, isolation `call`, beside FastMCP", call(skillz, "each_alone", words), theirs, most=1.3)
        table.row("the same, calls 30 ms apart", call(skillz, "each_alone", words), theirs, pause=0.03, most=1.0)
        table.row("Python function, isolation `worker`, beside FastMCP", call(skillz, "all_in_one", words), theirs, most=0.3)
        table.row("WASM tool, beside a ping", call(skillz, "copy", {"n": 1}), (skillz, "ping", {}), added=0.1)
        table.row("JavaScript function, beside server-everything's `echo`", call(skillz, "echo_text", {"message": "a"}),
                  call(everything, "echo", {"message": "a"}))
        bare_python, bare_node = (Bare(), sys.executable, None), (Bare(), "node", None)
        python, node = (skillz, "tools/call", a_program("python", PYTHON)), (skillz, "tools/call", a_program("javascript", NODE))
        table.row("Python program with three calls, beside a bare python3", python, bare_python, within=5)
        table.row("the same, programs 200 ms apart", python, bare_python, pause=0.2, within=3)
        table.row("JavaScript program with three calls, beside a bare node", node, bare_node, most=1.2)
        table.row("the same, programs 200 ms apart", node, bare_node, pause=0.2, within=5)
        table.add("ten Python programs at once, beside ten bare python3", *all_at_once(skillz, 10), most=2)
        for server in (skillz, fast, everything):
            server.close()
    if table.broken:
        sys.exit(f"not kept: {', '.join(table.broken)}")


if __name__ == "__main__":
    main()
