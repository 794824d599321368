"""Times warm calls over stdio: each server as a process of its own, the same raw client, turn by turn."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROUNDS = 400
FUNCTION = "def count_words(text: str) -> dict:\n    return {'words': len(text.split())}\n"
JAVASCRIPT = "export function run({ message }) { return `Echo: ${message}`; }"


class Server:
    """An MCP server on pipes, and the one call to be timed."""

    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=os.environ | (environment or {}))
        self.number = 0
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                    "clientInfo": {"name": "compare", "version": "1"}})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def request(self, method, params):
        self.number += 1
        self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        while True:
            message = json.loads(self.process.stdout.readline())
            if message.get("id") == self.number and "method" not in message:
                if "error" in message or message["result"].get("isError"):
                    sys.exit(f"{method}: {message}")
                return message["result"]

    def time(self, name, arguments):
        start = time.perf_counter()
        self.request("tools/call", {"name": name, "arguments": arguments})
        return (time.perf_counter() - start) * 1000

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def compare(title, skillz, other):
    """Times both in turn, so that whatever else the machine does falls on both alike."""
    times = ([], [])
    for turn in range(ROUNDS):
        for list_of_times, (server, name, arguments) in zip(times, (skillz, other)):
            took = server.time(name, arguments)
            if turn >= 20:
                list_of_times.append(took)
    mine, theirs = (statistics.median(list_of_times) for list_of_times in times)
    print(f"| {title} | {mine:.2f} ms | {theirs:.2f} ms | {mine / theirs:.2f} |")


def main():
    binary, others = sys.argv[1], Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as home:
        skillz = Server([binary], {"SKILLZ_HOME": home})
        for name, code, interpreter in (("count_words", FUNCTION.replace("count_words", "run"), "python3"),
                                        ("echo_text", JAVASCRIPT, "node")):
            skillz.request("tools/call", {"name": "register_script", "arguments": {
                "name": name, "description": "Compared", "code": code, "interpreter": interpreter}})
        program = Path(home) / "fast.py"
        program.write_text(f"from fastmcp import FastMCP\nmcp = FastMCP('x')\n@mcp.tool\n{FUNCTION}\nmcp.run(show_banner=False)\n")
        fast = Server([others / "python/bin/python", program])
        everything = Server(["node", others / "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js", "stdio"])
        print("| warm call | Skillz | beside it | ratio |\n|---|---|---|---|")
        compare("Python function, beside FastMCP", (skillz, "count_words", {"text": "a b c"}), (fast, "count_words", {"text": "a b c"}))
        compare("JavaScript function, beside server-everything's `echo`", (skillz, "echo_text", {"message": "a"}),
                (everything, "echo", {"message": "a"}))
        for server in (skillz, fast, everything):
            server.close()


if __name__ == "__main__":
    main()
