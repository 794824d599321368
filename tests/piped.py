"""An MCP server on pipes, and the least that a client of it needs."""

import json
import os
import subprocess
import sys


class Piped:
    def __init__(self, command, environment=None):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                        env=os.environ | (environment or {}))
        self.number = 0
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {},
                                    "clientInfo": {"name": "tests", "version": "1"}})
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _write(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def send(self, method, params):
        """Sends a request; gives its id."""
        self.number += 1
        self._write({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
        return self.number

    def answer(self, wanted):
        """Waits for the answer to any of some requests."""
        while True:
            line = self.process.stdout.readline()
            if not line:
                sys.exit("The server ended")
            message = json.loads(line)
            if message.get("id") in wanted and "method" not in message:
                return message

    def request(self, method, params):
        """Sends a request and waits for its answer: a message with `result` or `error`."""
        return self.answer({self.send(method, params)})

    def close(self):
        self.process.stdin.close()
        self.process.wait()
