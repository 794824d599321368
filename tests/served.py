"""The real server over HTTP, in a home of its own: found or built, started, called, and ended with all it left."""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
STATELESS = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": STATELESS, "io.modelcontextprotocol/clientCapabilities": {}}
DEADLINE_SECONDS = 60
# Linux's number for "send me a signal when my parent dies".
PR_SET_PDEATHSIG = 1


def target_folders():
    """Where cargo may have put a binary, the most likely first."""
    cache = os.environ.get("SKILLZ_DEV_CACHE") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "skillz-dev"
    named = os.environ.get("CARGO_TARGET_DIR")
    return ([Path(named)] if named else []) + [Path(cache) / "target", ROOT / "target"]


def find_binary():
    """`SKILLZ_BINARY`, else the newest binary that cargo has built, else one that is built now."""
    named = os.environ.get("SKILLZ_BINARY")
    if named:
        return named
    built = [folder / profile / "skillz" for folder in target_folders() for profile in ("release", "debug")]
    built = [binary for binary in built if binary.is_file()]
    if built:
        return str(max(built, key=lambda binary: binary.stat().st_mtime))
    folder = target_folders()[0]
    print(f"there is no binary yet; building it into {folder}", file=sys.stderr)
    environment = os.environ | {"CARGO_TARGET_DIR": str(folder), "PATH": f"{os.environ.get('PATH', '')}:{Path.home()}/.cargo/bin"}
    # Stdout is for the address.
    command = ["cargo", "build", "--workspace", "--locked"]
    if subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr).returncode != 0:
        sys.exit("the server could not be built")
    return str(folder / "debug" / "skillz")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def refuse_taken_port(port):
    """Another server on the port would answer in this one's place."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError as error:
            sys.exit(f"port {port} cannot be used: {error}")


def die_with_parent():
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


class Served:
    """A server for the time of a `with`. Ends the program if the server does not come up."""

    def __init__(self, port=None, arguments=(), environment=None, config=""):
        self.port = port or free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.address}/mcp"
        self.arguments = list(arguments)
        self.environment = environment or {}
        self.config = config

    def __enter__(self):
        binary = find_binary()
        refuse_taken_port(self.port)
        self.home = tempfile.TemporaryDirectory(prefix="skillz-served-", ignore_cleanup_errors=True)
        (Path(self.home.name) / "config.toml").write_text(self.config)
        environment = os.environ | {"SKILLZ_HOME": self.home.name} | self.environment
        # Whoever tests this asks without a token, and means none of the tools that are there.
        for name in ("SKILLZ_AUTH_TOKEN", "TOOLS_DIR"):
            environment.pop(name, None)
        command = [binary, "serve", "--transport", "http", "--port", str(self.port), *self.arguments]
        # Ctrl-C is for this program, which then ends the server.
        self.server = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=sys.stderr,
                                       preexec_fn=die_with_parent, start_new_session=True)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        # Shells start what runs in the background deaf to this one.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            self.wait_until_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        self.server.terminate()
        try:
            self.server.wait(10)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self.home.cleanup()

    def wait_until_up(self):
        deadline = time.monotonic() + DEADLINE_SECONDS
        while time.monotonic() < deadline and self.server.poll() is None:
            try:
                with urllib.request.urlopen(f"{self.address}/health", timeout=1):
                    return
            except OSError:
                time.sleep(0.02)
        sys.exit("the server did not come up")

    def call(self, name, arguments):
        """Calls a tool and gives its result; a failure ends the program."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments, "_meta": META}}
        request = urllib.request.Request(self.url, data=json.dumps(body).encode(), headers={
            "content-type": "application/json", "accept": "application/json, text/event-stream",
            "mcp-protocol-version": STATELESS, "mcp-method": "tools/call", "mcp-name": name})
        with urllib.request.urlopen(request, timeout=DEADLINE_SECONDS) as answer:
            text = answer.read().decode()
        lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
        message = json.loads(lines[-1] if lines else text)
        result = message.get("result")
        if result is None or result.get("isError"):
            sys.exit(f"{name} {arguments.get('name', '')}: {json.dumps(message)[:2000]}")
        return result

    def memory_kb(self, which="VmRSS"):
        """The server's resident memory now, or `VmHWM`, the most so far."""
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        return next(int(line.split()[1]) for line in status.splitlines() if line.startswith(f"{which}:"))
