"""Runs programs through `execute_code` and by hand, and compares results, output and exceptions.

    compare.py PATH_OF_SKILLZ [SEED:COUNT]

The programs are those of python.txt and javascript.txt, and COUNT programs of generated expressions (60 by default). Only
the wording of what is around an exception may differ.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent


class Server:
    """The binary on pipes, with an empty home."""

    def __init__(self, binary, home):
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=os.environ | {"SKILLZ_HOME": home})
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
                return message["result"]

    def run(self, language, code):
        return self.request("tools/call", {"name": "execute_code", "arguments": {"language": language, "code": code, "timeout": 60}})


def text(value, is_javascript):
    """A value as JSON, to be compared. To JavaScript all numbers are doubles, however their digits are written."""
    exact = json.dumps(value, sort_keys=True)
    return json.dumps(json.loads(exact, parse_int=float), sort_keys=True) if is_javascript else exact


def difference(expected, answer, is_javascript):
    """What differs, in words; None where nothing does."""
    if "error" in expected:
        ours = answer["content"][0]["text"]
        wanted = expected["error"].splitlines()[0]
        return None if answer.get("isError") and wanted in ours else f"by hand: {wanted}\nhere:    {ours}"
    if answer.get("isError"):
        return f"by hand: {json.dumps(expected['result'])}\nhere:    {answer['content'][0]['text']}"
    ours = answer["structuredContent"]
    if "runtime" in ours:
        return "it ran embedded: the interpreter or the sandbox is missing"
    for key in ("result", "stdout"):
        if text(ours[key], is_javascript) != text(expected[key], is_javascript):
            return f"{key} by hand: {expected[key]!r}\n{key} here:    {ours[key]!r}"
    return None


def main():
    generated = sys.argv[2] if len(sys.argv) > 2 else "1:60"
    count = failed = 0
    with tempfile.TemporaryDirectory() as home:
        server = Server(sys.argv[1], home)
        for language, arguments in (("python", ["python.txt"]), ("python", ["python.txt", generated]), ("javascript", ["javascript.txt"])):
            arguments = [str(HERE / arguments[0]), *arguments[1:]]
            by_hand = subprocess.Popen([sys.executable, HERE / "reference.py", *arguments], stdout=subprocess.PIPE)
            for line in by_hand.stdout:
                expected = json.loads(line)
                count += 1
                found = difference(expected, server.run(language, expected["code"]), language == "javascript")
                if found is not None:
                    failed += 1
                    print(f"{language} program {expected['name']}:\n{found}\n", flush=True)
            if by_hand.wait() != 0:
                sys.exit("The programs could not be run by hand")
        server.process.stdin.close()
        server.process.wait()
    print(f"{count - failed} passed, {failed} failed")
    sys.exit(1 if failed or count < 300 else 0)


main()
