"""One real server, spoken to directly and through Skillz: the same tools, the same results.

Usage: compare.py CASE, where CASE is JSON: {"name", "import": arguments of import_mcp, "calls": [[tool, arguments], ...]}.
The server under test is $SKILLZ, its home $SKILLZ_HOME.
"""

import asyncio
import json
import os
import sys
import tempfile

from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.types import CreateMessageResult, ElicitResult, ListRootsResult, TextContent


async def elicit(context, params):
    return ElicitResult(action="decline")


async def sample(context, params):
    return CreateMessageResult(role="assistant", content=TextContent(type="text", text="sampled"), model="none")


async def roots(context):
    return ListRootsResult(roots=[])


def client(server) -> Client:
    """A client that can do all that Skillz says it can: some servers list more tools to one that can do more."""
    return Client(server, mode="legacy", elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots)


def direct(definition: dict, folder: str) -> Client:
    if "url" in definition:
        address = definition["url"]
        return client(sse_client(address) if address.endswith("/sse") else address)
    environment = {name: os.environ[name] for name in ("PATH", "HOME")}
    return client(StdioServerParameters(command=definition["command"], args=definition.get("args", []), env=environment, cwd=folder))


def skillz(folder: str) -> Client:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "SKILLZ_HOME")} | {"SKILLZ_EXPOSE": "all"}
    return client(StdioServerParameters(command=os.environ["SKILLZ"], env=environment, cwd=folder))


async def all_tools(one: Client) -> dict:
    tools, cursor = {}, None
    while True:
        page = await one.list_tools(cursor=cursor)
        tools |= {tool.name: tool for tool in page.tools}
        cursor = page.next_cursor
        if not cursor:
            return tools


def plain(model) -> dict:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


differences: list[str] = []


def same(what: str, through: object, directly: object) -> None:
    if through != directly:
        differences.append(f"{what} differs:\n  directly: {json.dumps(directly)[:1000]}\n  through:  {json.dumps(through)[:1000]}")


async def main(case: dict) -> None:
    name = case["name"]
    with tempfile.TemporaryDirectory() as folder:
        async with direct(case["import"], folder) as alone, skillz(folder) as proxy:
            imported = plain(await proxy.call_tool("import_mcp", {"name": name, **case["import"]}))
            entry = imported.get("structuredContent", imported)
            assert entry.get("state") == "ready", f"it is not ready: {json.dumps(entry)}"
            assert entry["transport"] == case["transport"], f"it is spoken to over {entry['transport']}"
            originals = await all_tools(alone)
            there = await all_tools(proxy)
            listed = plain(await proxy.call_tool("list_tools", {"kind": "mcp", "detail": "full", "limit": 1000}))["structuredContent"]
            entries = {tool["mcp_server"]["tool"]: tool for tool in listed["mcp"]}
            same("the list of tools", sorted(entries), sorted(originals))
            for original, tool in originals.items():
                if original not in entries:
                    continue
                said, kept = plain(tool), entries[original]
                same(f"the input schema of {original}", kept["input_schema"], said["inputSchema"])
                same(f"the output schema of {original}", kept.get("output_schema"), said.get("outputSchema"))
                shown = plain(there[kept["name"]])
                for field in ("description", "title", "annotations", "icons", "_meta"):
                    if field in said:
                        same(f"{field} of {original}", shown.get(field), said[field].strip() if field == "description" else said[field])
            for tool, arguments in case["calls"]:
                directly = plain(await alone.call_tool(tool, arguments))
                through = plain(await proxy.call_tool(entries[tool]["name"], arguments))
                # Failures of the protocol's own are told as results, which a model can read.
                same(f"the result of {tool}", through, directly)
    if differences:
        sys.exit("\n".join(differences))
    print(f"{len(originals)} tools, {len(case['calls'])} calls")


asyncio.run(main(json.loads(sys.argv[1])))
