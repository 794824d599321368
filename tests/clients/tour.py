"""The tour by the official Python SDK. Usage: tour.py MODE WAY, where WAY is `stdio` (the server in $SKILLZ, its home in
$SKILLZ_HOME), or `http` or `sse` (the server at $SKILLZ_URL)."""

import asyncio
import json
import os
import sys
import warnings
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.shared.subscriptions import ResourceUpdated, ToolsListChanged

# What the newest protocol has dropped is still toured with older ones.
warnings.simplefilter("ignore")

TOOLS = json.loads((Path(__file__).parent / "tools.json").read_text())
# A module that copies its arguments to its result; text, so that no tour waits for a compiler.
MODULE = (Path(__file__).parents[2] / "crates" / "cli" / "tests" / "sessions" / "echo.wat").read_text()
PATIENCE = 60


class Tour:
    def __init__(self, mode: str, way: str):
        self.mode, self.way = mode, way
        self.notes = asyncio.Queue()

    def client(self) -> Client:
        if self.way == "stdio":
            environment = {name: os.environ[name] for name in ("PATH", "HOME", "SKILLZ_HOME")}
            server = StdioServerParameters(command=os.environ["SKILLZ"], env=environment)
        elif self.way == "sse":
            server = sse_client(os.environ["SKILLZ_URL"] + "/sse")
        else:
            server = os.environ["SKILLZ_URL"] + "/mcp"
        return Client(server, mode=self.mode, elicitation_callback=self.fill_in, sampling_callback=self.complete_text,
                      message_handler=self.note, cache=None)

    async def fill_in(self, _context, params):
        assert params.message == "What is your name?", params
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async def complete_text(self, _context, params):
        assert "capital of France" in params.messages[0].content.text, params
        return types.CreateMessageResult(role="assistant", model="none", content=types.TextContent(type="text", text="Paris"))

    async def note(self, message) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            await self.notes.put(ToolsListChanged())
        elif isinstance(message, types.ResourceUpdatedNotification):
            await self.notes.put(ResourceUpdated(uri=str(message.params.uri)))

    @asynccontextmanager
    async def changes(self, client: Client, uri: str):
        """A function that gives the next change of the list or of the resource, in the manner of the protocol."""
        if self.mode == "legacy":
            while not self.notes.empty():
                self.notes.get_nowait()
            await client.subscribe_resource(uri)
            yield self.notes.get
            await client.unsubscribe_resource(uri)
        else:
            async with client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as stream:
                yield stream.__anext__

    async def walk(self) -> None:
        async with self.client() as client:
            await self.make_tools(client)
            await self.call(client)
            await self.report_and_cancel(client)
            await self.ask(client)
            await self.look_around(client)
            await self.see_changes(client)
        async with self.client() as client:
            assert "add" in await names(client)
            assert (await succeed(client, "add", {"numbers": [4]})).structured_content == {"sum": 4}

    async def make_tools(self, client: Client) -> None:
        listed = await names(client)
        assert len(listed) == 13 and listed == sorted(listed), listed
        for name, code in TOOLS.items():
            made = await succeed(client, "register_script",
                                 {"name": name, "description": f"Tours: {name}", "code": code, "interpreter": "python3"})
            assert made.structured_content["version"] == "1.0.0", made
        listed = await names(client)
        assert set(TOOLS) <= set(listed) and listed == sorted(listed), listed

    async def call(self, client: Client) -> None:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["add"].input_schema["properties"]["numbers"]["type"] == "array", tools["add"]
        assert (await succeed(client, "add", {"numbers": [1, 2.5]})).structured_content == {"sum": 3.5}
        [picture] = (await succeed(client, "picture", {})).content
        assert picture.type == "image" and picture.mime_type == "image/png" and picture.data.startswith("iVBOR"), picture
        failed = await client.call_tool("add", {"numbers": []})
        assert failed.is_error and "there is nothing to add" in text(failed), failed
        failed = await client.call_tool("add", {"number": [1]})
        assert failed.is_error and "numbers" in text(failed), failed
        try:
            await client.call_tool("no_such_tool", {})
        except Exception as error:
            assert "no_such_tool" in str(error), error
        else:
            raise AssertionError("an unknown tool was called")
        built = await succeed(client, "build_tool", {"name": "echo", "description": "Echoes.", "wat": MODULE,
                                                     "examples": [{"arguments": {"a": 1}, "result": {"a": 1}}]})
        assert built.structured_content["examples"]["passed"] == 1, built
        assert (await succeed(client, "echo", {"text": "é"})).structured_content == {"text": "é"}

    async def report_and_cancel(self, client: Client) -> None:
        seen = []

        async def progress(done, total, message):
            seen.append((done, total, message))

        assert text(await client.call_tool("count_up", {}, progress_callback=progress)) == "counted"
        assert seen == [(step, 3, f"step {step}") for step in (1, 2, 3)], seen

        started = anyio.Event()

        async def starts(*_):
            started.set()

        async with anyio.create_task_group() as group:
            async def wait():
                await client.call_tool("wait", {}, progress_callback=starts)
                raise AssertionError("the call was not cancelled")
            group.start_soon(wait)
            await started.wait()
            group.cancel_scope.cancel()
        assert (await succeed(client, "add", {"numbers": [1]})).structured_content == {"sum": 1}

    async def ask(self, client: Client) -> None:
        assert text(await succeed(client, "ask_name", {})) == "Hello, Ada"
        assert text(await succeed(client, "ask_model", {})) == "The model says: Paris"

    async def look_around(self, client: Client) -> None:
        uris = [str(resource.uri) for resource in (await client.list_resources()).resources]
        assert "skillz://guide" in uris and "skillz://tools/add" in uris, uris
        [contents] = (await client.read_resource("skillz://tools/add")).contents
        assert json.loads(contents.text)["name"] == "add", contents
        templates = [template.uri_template for template in (await client.list_resource_templates()).resource_templates]
        assert "skillz://tools/{name}" in templates, templates
        prompts = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert "improve_tool" in prompts, prompts
        prompt = await client.get_prompt("improve_tool", {"tool_name": "add"})
        assert "add" in prompt.messages[0].content.text, prompt
        reference = types.PromptReference(type="ref/prompt", name="improve_tool")
        completed = await client.complete(reference, {"name": "tool_name", "value": "ask_"})
        assert completed.completion.values == ["ask_model", "ask_name"], completed

    async def see_changes(self, client: Client) -> None:
        uri = "skillz://tools/add"
        async with self.changes(client, uri) as change:
            changed = {"name": "add", "description": "Adds any numbers", "code": TOOLS["add"], "interpreter": "python3", "overwrite": True}
            await succeed(client, "register_script", changed)
            wanted = {"tools", uri}
            while wanted:
                event = await change()
                wanted.discard("tools" if isinstance(event, ToolsListChanged) else str(getattr(event, "uri", "")))
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["add"].description == "Adds any numbers", tools["add"]


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


def text(result) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


async def succeed(client: Client, tool: str, arguments: dict):
    result = await client.call_tool(tool, arguments, read_timeout_seconds=PATIENCE)
    assert not result.is_error, f"{tool} failed: {text(result)}"
    return result


asyncio.run(asyncio.wait_for(Tour(sys.argv[1], sys.argv[2]).walk(), 4 * PATIENCE))
