"""The tools that the MCP conformance suite asks for by name, as arguments of `register_script`.

Every one is an ordinary tool: a Python function in the sandbox, with the host requests that any tool has.
"""

import json

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA=="


def returns(content):
    """A function that returns MCP content."""
    return f"def run() -> object:\n    return {{'content': {content!r}}}\n"


def text(value):
    return {"type": "text", "text": value}


PICTURE = {"type": "image", "data": PIXEL, "mimeType": "image/png"}


def resource(uri, value, mime_type="text/plain"):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime_type, "text": value}}


LOGGING = '''
import time
import skillz

def run() -> str:
    skillz.log("info", "Tool execution started")
    time.sleep(0.05)
    skillz.log("info", "Tool processing data")
    time.sleep(0.05)
    skillz.log("info", "Tool execution completed")
    return "Logged three messages"
'''

PROGRESS = '''
import time
import skillz

def run() -> str:
    for done in (0, 50, 100):
        skillz.progress(done, 100)
        time.sleep(0.05)
    return "Reported progress"
'''

FAILS = '''
def run() -> str:
    raise RuntimeError("This tool intentionally returns an error for testing")
'''

SAMPLING = '''
import skillz

def run(prompt: str) -> str:
    return "LLM response: " + skillz.sample(prompt)
'''

ELICITATION = '''
import json
import skillz

def run(message: str) -> str:
    content = skillz.ask(message, {"type": "object", "properties": {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"}}, "required": ["username", "email"]})
    return f"User response: action=accept, content={json.dumps(content)}"
'''


def asks(message, properties, required=()):
    """A function that shows a form and tells what came of it."""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return f'''
import json
import skillz

SCHEMA = json.loads({json.dumps(json.dumps(schema))})

def run() -> str:
    content = skillz.ask({message!r}, SCHEMA)
    return f"Elicitation completed: action=accept, content={{json.dumps(content)}}"
'''


DEFAULTS = asks("Review the defaults", {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
})

ENUMS = asks("Choose", {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {"type": "string", "oneOf": [
        {"const": f"value{n}", "title": f"{word} Option"} for n, word in ((1, "First"), (2, "Second"), (3, "Third"))]},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
    "titledMulti": {"type": "array", "items": {"anyOf": [
        {"const": f"value{n}", "title": f"{word} Choice"} for n, word in ((1, "First"), (2, "Second"), (3, "Third"))]}},
})

SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object",
                          "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                   "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                   "phone": {"type": "string"}, "email": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

ECHO = "def run(**arguments) -> object:\n    return arguments\n"

# A form's title, or `_meta.name` of a sampling request, names the question in the stateless protocol.
ASK = '''
import asyncio
import skillz

def form(name, /, **properties):
    return {"type": "object", "title": name, "properties": properties, "required": list(properties)}

def ask(name, message, /, **properties):
    return skillz.ask(message, form(name, **properties))

def sample(name, prompt, most=100):
    return skillz.sample(prompt, max_tokens=most, _meta={"name": name})
'''

ASK_NAME = ASK + '''
def run() -> str:
    return f"Hello, {ask('user_name', 'What is your name?', name={'type': 'string'})['name']}!"
'''

ASK_MODEL = ASK + '''
def run() -> str:
    return sample("capital_question", "What is the capital of France?")
'''

ASK_ROOTS = '''
import skillz

def run() -> str:
    return "Roots: " + ", ".join(root["uri"] for root in skillz.roots())
'''

ASK_CONFIRMATION = ASK + '''
def run() -> str:
    return "state-ok" if ask("confirm", "Please confirm", ok={"type": "boolean"})["ok"] else "not confirmed"
'''

ASK_ALL = ASK + '''
async def run() -> str:
    name, greeting, roots = await asyncio.gather(
        skillz.aio.ask("What is your name?", form("user_name", name={"type": "string"})),
        skillz.aio.sample("Generate a greeting", max_tokens=50, _meta={"name": "greeting"}),
        skillz.aio.roots())
    return f"{greeting} {name['name']} {len(roots)}"
'''

ASK_TWICE = ASK + '''
def run() -> str:
    name = ask("step1", "Step 1: What is your name?", name={"type": "string"})["name"]
    color = ask("step2", "Step 2: What is your favorite color?", color={"type": "string"})["color"]
    return f"{name} likes {color}"
'''

ASK_WHAT_CAN_BE_ASKED = ASK + '''
def run() -> str:
    if skillz.context.capabilities["elicitation"]:
        ask("user_name", "What is your name?", name={"type": "string"})
    if skillz.context.capabilities["sampling"]:
        sample("greeting", "Generate a greeting")
    return "done"
'''


def publishes(name):
    """A function that publishes another version of a tool, over the server's own HTTP address."""
    return f'''
import json, os, time, urllib.request

def run() -> str:
    meta = {{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {{}}}}
    arguments = {{"name": {name!r}, "description": f"Published at {{time.time()}}", "code": "def run() -> str:\\n    return 'x'\\n",
                 "overwrite": True}}
    body = {{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {{"name": "register_script", "arguments": arguments, "_meta": meta}}}}
    request = urllib.request.Request(os.environ["CONFORMANCE_URL"], data=json.dumps(body).encode(), headers={{
        "content-type": "application/json", "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "register_script"}})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return answer.read().decode()
'''


REACHES_SERVER = {"network": True, "env": ["CONFORMANCE_URL"]}

SLEEP = '''
import time

def run(seconds: float = 1, label: str = "") -> str:
    time.sleep(seconds)
    return f"Slept {seconds} s {label}"
'''

FAILS_LATER = '''
import time

def run() -> str:
    time.sleep(1)
    raise RuntimeError("The job failed")
'''

CONFIRM = ASK + '''
def run(filename: str = "file") -> str:
    return f"Deleted {filename}" if ask("confirm", f"Delete {filename}?", confirm={"type": "boolean"})["confirm"] else "Kept"
'''

ASK_BOTH = ASK + '''
async def run() -> str:
    one, two = await asyncio.gather(
        skillz.aio.ask("Who?", form("who", name={"type": "string"})), skillz.aio.ask("For whom?", form("whom", name={"type": "string"})))
    return f"{one} {two}"
'''

ASK_THEN_SLEEP = ASK + '''
import time

def run() -> str:
    name = ask("user_name", "What is your name?", name={"type": "string"})["name"]
    time.sleep(6)
    return f"Hello, {name}!"
'''

# A tool that asks for more time than usual becomes a task at once.
LONG = {"limits": {"timeout_ms": 120_000}}

# name, description, code, and whatever else `register_script` takes
TOOLS = [
    ("test_simple_text", "Returns a text", returns([text("This is a simple text response for testing.")]), {}),
    ("test_image_content", "Returns a picture", returns([PICTURE]), {}),
    ("test_audio_content", "Returns a sound", returns([{"type": "audio", "data": SOUND, "mimeType": "audio/wav"}]), {}),
    ("test_embedded_resource", "Returns a resource",
     returns([resource("test://embedded-resource", "This is an embedded resource content.")]), {}),
    ("test_multiple_content_types", "Returns text, a picture and a resource", returns([
        text("Multiple content types test:"), PICTURE,
        resource("test://mixed-content-resource", json.dumps({"test": "data", "value": 123}), "application/json")]), {}),
    ("test_tool_with_logging", "Logs while it runs", LOGGING, {}),
    ("test_error_handling", "Fails", FAILS, {}),
    ("test_tool_with_progress", "Reports progress", PROGRESS, {}),
    ("test_sampling", "Asks the client's model", SAMPLING, {}),
    ("test_elicitation", "Asks the user", ELICITATION, {}),
    ("test_elicitation_sep1034_defaults", "Asks with defaults", DEFAULTS, {}),
    ("test_elicitation_sep1330_enums", "Asks with choices", ENUMS, {}),
    ("json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features", ECHO, {"input_schema": SCHEMA_2020}),
    ("test_reconnection", "Takes a moment", SLEEP.replace("seconds: float = 1", "seconds: float = 0.5"), {}),
    ("test_custom_header", "Takes an argument that is a header too", ECHO, {"input_schema": {
        "type": "object", "properties": {"value": {"type": "string", "x-mcp-header": "Value"}}}}),
    ("test_missing_capability", "Needs sampling", SAMPLING.replace("prompt: str", "prompt: str = 'Hello'"), {}),
    ("test_streaming_elicitation", "Asks the user", ASK_NAME, {}),
    ("test_logging_tool", "Logs while it runs", LOGGING, {}),
    ("test_trigger_tool_change", "Publishes a tool", publishes("test_published_tool"), {"permissions": REACHES_SERVER}),
    ("test_trigger_prompt_change", "Publishes a tool", publishes("test_published_tool"), {"permissions": REACHES_SERVER}),
    ("test_input_required_result_elicitation", "Asks the user", ASK_NAME, {}),
    ("test_input_required_result_sampling", "Asks the client's model", ASK_MODEL, {}),
    ("test_input_required_result_list_roots", "Asks for the roots", ASK_ROOTS, {}),
    ("test_input_required_result_request_state", "Asks for confirmation", ASK_CONFIRMATION, {}),
    ("test_input_required_result_multiple_inputs", "Asks for three things at once", ASK_ALL, {}),
    ("test_input_required_result_multi_round", "Asks twice", ASK_TWICE, {}),
    ("test_input_required_result_tampered_state", "Asks for confirmation", ASK_CONFIRMATION, {}),
    ("greet", "Greets", "def run(name: str) -> str:\n    return f'Hello, {name}!'\n", {}),
    ("slow_compute", "Sleeps", SLEEP, LONG),
    ("failing_job", "Fails after a second", FAILS_LATER, LONG),
    ("protocol_error_job", "Breaks", FAILS, LONG),
    ("confirm_delete", "Asks before it deletes", CONFIRM, LONG),
    ("multi_input", "Asks two things at once", ASK_BOTH, LONG),
    ("test_tool_with_task", "Asks, and then takes long", ASK_THEN_SLEEP, {}),
    ("test_input_required_result_capabilities", "Asks what the client answers", ASK_WHAT_CAN_BE_ASKED, {}),
]
