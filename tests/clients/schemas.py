"""Schemas of real MCP servers, sent on by this one: tools with the same schemas are registered, listed in both eras, and
compared with the originals. Usage: schemas.py SERVERS, a JSON object of names and commands; the server is at $SKILLZ_URL."""

import asyncio
import json
import os
import sys
import warnings

from jsonschema import Draft202012Validator
from mcp import Client, StdioServerParameters

warnings.simplefilter("ignore")
CODE = "def run(**arguments) -> object:\n    return {'content': [{'type': 'text', 'text': 'called'}]}\n"


async def tools_of(command: list[str]) -> list:
    server = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))
    async with Client(server, mode="legacy") as client:
        return (await client.list_tools()).tools


def example(schema: dict, name: str = "value"):
    """A value that fits a schema, as far as its simple keywords say."""
    for keyword in ("const", "default"):
        if keyword in schema:
            return schema[keyword]
    if schema.get("enum"):
        return schema["enum"][0]
    for keyword in ("anyOf", "oneOf", "allOf"):
        if schema.get(keyword):
            return example(schema[keyword][0], name)
    kind = schema.get("type", "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: example(properties.get(name, {}), name) for name in schema.get("required", [])}
    if kind == "array":
        return [example(schema.get("items") or {}, name)] * schema.get("minItems", 1)
    return {"string": f"some {name}", "integer": max(1, schema.get("minimum", 1)), "number": max(1, schema.get("minimum", 1)),
            "boolean": True, "null": None}[kind]


def nodes(schema):
    """Every object in a schema that may be a schema."""
    if isinstance(schema, dict):
        yield schema
        for keyword, value in schema.items():
            if keyword not in ("default", "const", "enum", "examples", "$defs", "definitions"):
                yield from nodes(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from nodes(item)


def check_form(name: str, schema: dict, era: str) -> None:
    Draft202012Validator.check_schema(schema)
    assert schema.get("type") == "object", (name, era, schema)
    for node in nodes(schema):
        is_array = node.get("type") == "array"
        assert not is_array or "items" in node or "prefixItems" in node, (name, era, node)
        assert not str(node.get("$ref", "#")).startswith("#/"), (name, era, node)
    if era == "legacy":
        assert not {"anyOf", "oneOf", "allOf"} & schema.keys(), (name, schema)
        assert all(isinstance(member, dict) for member in schema.get("properties", {}).values()), (name, schema)


async def check(url: str, mode: str, originals: dict) -> None:
    async with Client(url, mode=mode, cache=None) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        for name, original in originals.items():
            sent = listed[name].input_schema
            check_form(name, sent, mode)
            assert set(sent.get("properties", {})) == set(original.get("properties", {})), (name, sent)
            fitting = example(original, name)
            assert Draft202012Validator(original).is_valid(fitting), (name, fitting, "no example")
            assert Draft202012Validator(sent).is_valid(fitting), (name, fitting, sent)
            result = await client.call_tool(name, fitting)
            assert not result.is_error, (name, fitting, result)
            for missing in original.get("required", []):
                lacking = {key: value for key, value in fitting.items() if key != missing}
                assert not Draft202012Validator(sent).is_valid(lacking), (name, lacking, sent)
                result = await client.call_tool(name, lacking)
                assert result.is_error and missing in result.content[0].text, (name, lacking, result)


async def main() -> None:
    url = os.environ["SKILLZ_URL"] + "/mcp"
    originals = {}
    async with Client(url, mode="legacy") as client:
        for server, command in json.loads(sys.argv[1]).items():
            tools = await tools_of(command)
            assert tools, f"{server} lists no tools"
            for tool in tools:
                name = f"{server}_{tool.name}".lower().replace("-", "_")[:48]
                originals[name] = tool.input_schema
                made = await client.call_tool("register_script", {
                    "name": name, "description": tool.description or name, "code": CODE, "interpreter": "python3",
                    "input_schema": tool.input_schema})
                assert not made.is_error, (name, made.content[0].text)
            print(f"{server}: {len(tools)} tools")
    for mode in ("legacy", "2026-07-28"):
        await check(url, mode, originals)


asyncio.run(asyncio.wait_for(main(), 160))
