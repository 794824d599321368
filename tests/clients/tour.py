"""The tour by the official Python SDK. Usage: tour.py MODE, with the server in $SKILLZ and its home in $SKILLZ_HOME."""

import asyncio
import os
import sys

from mcp import Client, StdioServerParameters

RUST = """
#[skillz::tool]
fn run(text: String) -> Result<usize, String> {
    if text.is_empty() {
        return Err("the text is empty".into());
    }
    Ok(text.split_whitespace().count())
}
"""

PYTHON = '''
def run(numbers: list[float]) -> dict:
    """Adds numbers.

    numbers: what to add
    """
    return {"sum": sum(numbers)}
'''


def connect(mode: str) -> Client:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "SKILLZ_HOME")}
    return Client(StdioServerParameters(command=os.environ["SKILLZ"], env=environment), mode=mode)


async def names(client: Client) -> list[str]:
    return [tool.name for tool in (await client.list_tools()).tools]


def text(result) -> str:
    return "\n".join(block.text for block in result.content if block.type == "text")


async def succeed(client: Client, tool: str, arguments: dict):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, f"{tool} failed: {text(result)}"
    return result


async def tour(mode: str) -> None:
    async with connect(mode) as client:
        listed = await names(client)
        assert len(listed) == 13 and listed == sorted(listed), listed

        built = await succeed(
            client,
            "build_tool",
            {
                "name": "count_words",
                "description": "Counts words.",
                "code": RUST,
                "examples": [{"arguments": {"text": "a b"}, "result": 2}, {"arguments": {"text": ""}, "is_error": True}],
            },
        )
        assert built.structured_content["examples"]["passed"] == 2, built
        registered = await succeed(
            client,
            "register_script",
            {"name": "add", "description": "Adds numbers.", "code": PYTHON, "interpreter": "python3"},
        )
        assert registered.structured_content["version"] == "1.0.0", registered

        listed = await names(client)
        assert "count_words" in listed and "add" in listed, listed
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert tools["add"].input_schema["properties"]["numbers"]["type"] == "array", tools["add"]

        assert text(await succeed(client, "count_words", {"text": "one two three"})) == "3"
        assert (await succeed(client, "add", {"numbers": [1, 2.5]})).structured_content == {"sum": 3.5}

        failed = await client.call_tool("count_words", {"text": ""})
        assert failed.is_error and "the text is empty" in text(failed), failed
        failed = await client.call_tool("add", {"number": [1]})
        assert failed.is_error and "numbers" in text(failed), failed
        try:
            await client.call_tool("no_such_tool", {})
        except Exception as error:
            assert "no_such_tool" in str(error), error
        else:
            raise AssertionError("an unknown tool was called")

    async with connect(mode) as client:
        assert "count_words" in await names(client)
        assert text(await succeed(client, "count_words", {"text": "still here"})) == "2"
        assert (await succeed(client, "add", {"numbers": [4]})).structured_content == {"sum": 4}


asyncio.run(asyncio.wait_for(tour(sys.argv[1]), 240))
