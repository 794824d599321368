"""One imported server for all clients: a hundred calls through three clients of one server over HTTP, in both eras, are one
process and one greeting of the imported server; what each of them asks its client reaches that client. And who comes over
HTTP imports no server by command.

Usage: shared.py SCRIPT, the fake server. The server under test is $SKILLZ, its home $SKILLZ_HOME.
"""

import asyncio
import json
import os
import socket
import subprocess
import sys

from mcp import Client
from mcp.types import ElicitResult

SCRIPT = sys.argv[1]


def text(result) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def listening(port: int) -> None:
    for _ in range(200):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.close()
            return
        except OSError:
            await asyncio.sleep(0.05)
    raise TimeoutError("the server never listened")


def client(port: int, mode: str, name: str) -> Client:
    async def elicit(context, params):
        return ElicitResult(action="accept", content={"name": name})

    return Client(f"http://127.0.0.1:{port}/mcp", mode=mode, elicitation_callback=elicit)


async def work(one: Client, calls: int) -> set[str]:
    return {text(await one.call_tool("fake_pid", {})) for _ in range(calls)}


async def ask(one: Client, name: str) -> None:
    answer = json.loads(text(await one.call_tool("fake_ask", {})))
    assert answer == {"action": "accept", "content": {"name": name}}, answer


async def main() -> None:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "SKILLZ_HOME")}
    added = subprocess.run([os.environ["SKILLZ"], "servers", "add", "fake", "--", "python3", SCRIPT], env=environment)
    assert added.returncode == 0
    port = free_port()
    command = [os.environ["SKILLZ"], "--transport", "http", "--port", str(port)]
    server = subprocess.Popen(command, env=environment)
    try:
        await listening(port)
        async with (
            client(port, "legacy", "Ada") as first,
            client(port, "2026-07-28", "Bob") as second,
            client(port, "legacy", "Cy") as third,
        ):
            refused = await first.call_tool("import_mcp", {"name": "x", "command": "python3", "args": [SCRIPT]})
            assert refused.is_error and "over HTTP" in text(refused), text(refused)
            done = await asyncio.gather(work(first, 34), work(second, 33), work(third, 30))
            for one, name in ((first, "Ada"), (second, "Bob"), (third, "Cy")):
                await ask(one, name)
            pids = set.union(*done)
            assert len(pids) == 1, pids
            assert json.loads(pids.pop())["initialized"] == 1
    finally:
        server.terminate()
        server.wait(10)
    print("three clients, 100 calls")


asyncio.run(main())
