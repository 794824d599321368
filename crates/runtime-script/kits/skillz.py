"""What a running Skillz tool may ask of its server.

    import skillz

    skillz.memory.get(key, default=None)     skillz.memory.set(key, value, ttl=None)
    skillz.memory.list(prefix="")            skillz.memory.delete(key)
    skillz.call(name, **arguments)           another tool's result
    skillz.search(query)                     tools by what they do; skillz.tools.list() gives all
    skillz.describe(name)                    one tool in full
    skillz.log(message, level="info")        skillz.progress(current, total=None, message=None)
    skillz.ask(message, schema)              what the user filled in; raises Declined
    skillz.sample(prompt)                    the text that the client's model answers
    skillz.resources.list()                  skillz.resources.read(uri)
    skillz.roots()                           skillz.context

Each is there as a coroutine too, under `skillz.aio`: `await skillz.aio.call(name, **arguments)`.
A program may also use `skillz.arguments()` and `skillz.reply(value)` instead of reading its arguments
and printing its result itself.
"""

import json
import os
import sys
import threading

from _skillz_values import NoJson, to_json

__all__ = [
    "Declined", "SkillzError", "aio", "arguments", "ask", "call", "describe", "log", "memory", "progress", "reply", "resources",
    "roots", "sample", "search", "stream", "tools",
]

_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class SkillzError(RuntimeError):
    """A host request failed. `code` is JSON-RPC's, `data` is detail where there is any."""

    def __init__(self, message, code=-32000, data=None):
        super().__init__(message)
        self.code = code
        self.data = data


class Declined(SkillzError):
    """The user said no, or closed the question. `action` is `decline` or `cancel`."""

    def __init__(self, action):
        super().__init__("The user answered the question with `%s`" % action)
        self.action = action


class Context(dict):
    """The call's context; its entries are attributes too."""

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


class _Reply:
    __slots__ = ("done", "message", "on_done")

    def __init__(self, on_done=None):
        self.done = False
        self.message = None
        self.on_done = on_done

    def value(self):
        error = self.message.get("error")
        if error is not None:
            raise SkillzError(error.get("message", "The request failed"), error.get("code", -32000), error.get("data"))
        return self.message.get("result")


class _Channel:
    """Requests and replies over one pair of pipes. Whoever waits for a reply reads for everybody, so that no
    thread is needed until a coroutine waits."""

    def __init__(self, read_line, write):
        self._read_line = read_line
        self._write = write
        self._changed = threading.Condition()
        self._waiting = {}
        self._reading = False
        self._coroutines = 0
        self._pumping = False
        self._count = 0
        self.request = None

    def outstanding(self):
        with self._changed:
            return len(self._waiting)

    def send(self, message):
        try:
            text, _ = to_json(message, "message")
        except NoJson as error:
            raise TypeError(str(error)) from None
        self._write(text.encode() + b"\n")

    def notify(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def start(self, method, params, on_done=None):
        """Sends a request. Gives its id where `on_done` will get the reply, else what will hold it."""
        reply = _Reply(on_done)
        with self._changed:
            self._count += 1
            # The process id keeps a late reply to an earlier call of a warm worker from being taken for this one.
            identity = "%d-%d" % (os.getpid(), self._count)
            self._waiting[identity] = reply
            self._coroutines += on_done is not None
        try:
            self.send({"jsonrpc": "2.0", "id": identity, "method": method, "params": params})
        except BaseException:
            with self._changed:
                if self._waiting.pop(identity, None) is not None:
                    self._coroutines -= on_done is not None
            raise
        return reply if on_done is None else identity

    def ask(self, method, params):
        reply = self.start(method, params)
        self._read_until(lambda: reply.done)
        return reply.value()

    def first_request(self):
        self._read_until(lambda: self.request is not None)
        return self.request

    def _read_until(self, satisfied):
        while True:
            with self._changed:
                while self._reading and not satisfied():
                    self._changed.wait()
                if satisfied():
                    return
                self._reading = True
            self._read_one()

    def _read_one(self):
        message = None
        try:
            line = self._read_line()
            message = _parse(line) if line else {"closed": True}
        finally:
            with self._changed:
                self._reading = False
                finished = self._take(message) if message else []
                self._changed.notify_all()
        for reply in finished:
            if reply.on_done is not None:
                reply.on_done(reply)

    def _take(self, message):
        if "closed" in message:
            gone = {"error": {"message": "The server takes no more requests: its line to it is closed"}}
            finished = list(self._waiting.values())
            self._waiting.clear()
            if self.request is None:
                self.request = {}
        elif message.get("method") == "execute":
            self.request = message
            return []
        else:
            gone = message
            reply = self._waiting.pop(message.get("id"), None)
            finished = [] if reply is None else [reply]
        for reply in finished:
            self._coroutines -= reply.on_done is not None
            reply.message = gone
            reply.done = True
        return finished

    def pump(self):
        """Has a thread read for as long as a coroutine waits."""
        with self._changed:
            if self._pumping or self._coroutines == 0:
                return
            self._pumping = True
        threading.Thread(target=self._pump, name="skillz-replies", daemon=True).start()

    def _pump(self):
        while True:
            with self._changed:
                while self._reading and self._coroutines:
                    self._changed.wait()
                if not self._coroutines:
                    self._pumping = False
                    return
                self._reading = True
            self._read_one()


def _parse(line):
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


_channel = None
_context = None
_in_worker = False
_setup = threading.Lock()


def _attach(channel, context):
    """Used by warm workers: gives the call in progress its channel and context."""
    global _channel, _context, _in_worker
    _channel = channel
    _context = None if context is None else Context(context)
    _in_worker = True


def _connected():
    if _channel is not None:
        return _channel
    if _in_worker:
        raise SkillzError("Host requests can be made only during a call, not while the module is imported")
    with _setup:
        return _process_channel()


def _process_channel():
    global _channel
    if _channel is None:
        numbers = os.environ.get("SKILLZ_HOST_FD")
        if numbers is None:
            # No line of its own: the text layer, since the script may have read through it already.
            read_line, output = sys.stdin.readline, sys.__stdout__.buffer
        else:
            read, write = map(int, numbers.split(","))
            read_line, output = open(read, "rb").readline, open(write, "wb")
        lock = threading.Lock()

        def write(line):
            with lock:
                output.write(line)
                output.flush()

        _channel = _Channel(read_line, write)
    return _channel


def __getattr__(name):
    if name != "context":
        raise AttributeError("module 'skillz' has no attribute %r" % name)
    global _context
    if _context is None:
        if _in_worker:
            return Context()
        text = os.environ.get("SKILLZ_CONTEXT")
        _context = Context(json.loads(text)) if text else Context(_request().get("params", {}).get("context", {}))
    return _context


def _request():
    return _connected().first_request()


def arguments():
    """The call's arguments (programs)."""
    text = os.environ.get("SKILLZ_ARGUMENTS")
    return json.loads(text) if text else _request().get("params", {}).get("arguments", {})


def reply(value):
    """Sends the result (programs)."""
    _connected().send({"jsonrpc": "2.0", "id": 1, "result": value})


# Each request once: method, parameters, and how its result is read. The functions below and those of `aio`
# differ only in how they wait.

def _memory_get(key, default=None):
    return "memory/get", {"key": key}, lambda result: result["value"] if result.get("found") else default


def _memory_set(key, value, ttl=None):
    params = {"key": key, "value": value}
    if ttl is not None:
        params["ttl"] = ttl.total_seconds() if hasattr(ttl, "total_seconds") else ttl
    return "memory/set", params, lambda result: bool(result.get("success"))


def _memory_list(prefix=""):
    return "memory/list", {"prefix": prefix}, lambda result: result["keys"]


def _memory_delete(key):
    return "memory/delete", {"key": key}, lambda result: result["deleted"]


def _call(*positional, **named):
    if not positional or len(positional) > 2:
        raise TypeError("skillz.call(name, **arguments) takes the tool's name first")
    given = dict(positional[1]) if len(positional) == 2 else {}
    given.update(named)
    return "tools/call", {"name": positional[0], "arguments": given}, lambda result: result["output"]


def _tools_list(query=None):
    return "tools/list", {} if query is None else {"query": query}, lambda result: result["tools"]


def _search(query):
    return "tools/list", {"query": query}, lambda result: result["tools"]


def _describe(name):
    return "tools/describe", {"name": name}, lambda result: result


def _ask(message, schema):
    def content(result):
        if result.get("action") != "accept":
            raise Declined(result.get("action", "cancel"))
        return result.get("content")

    return "elicitation/create", {"message": message, "requestedSchema": schema}, content


def _sample(prompt, max_tokens=1024, system=None, **options):
    messages = prompt
    if isinstance(prompt, str):
        messages = [{"role": "user", "content": {"type": "text", "text": prompt}}]
    params = {"messages": messages, "maxTokens": max_tokens}
    if system is not None:
        params["systemPrompt"] = system
    params.update(options)
    return "sampling/createMessage", params, _sampled_text


def _sampled_text(result):
    content = result.get("content")
    blocks = content if isinstance(content, list) else [content]
    texts = [block["text"] for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    if not texts:
        raise SkillzError("The client's model answered without text", data=result)
    return "\n".join(texts)


def _resources_list():
    return "resources/list", {}, lambda result: result


def _resources_read(uri):
    return "resources/read", {"uri": uri}, lambda result: result


def _roots():
    return "roots/list", {}, lambda result: result["roots"]


def _waiting(request):
    def function(*positional, **named):
        method, params, read = request(*positional, **named)
        return read(_connected().ask(method, params))

    function.__name__ = function.__qualname__ = request.__name__.lstrip("_")
    return function


def _awaiting(request):
    async def function(*positional, **named):
        import asyncio

        method, params, read = request(*positional, **named)
        loop = asyncio.get_running_loop()
        future = loop.create_future()

        def finish(reply):
            if not future.done():
                future.set_result(reply)

        def on_done(reply):
            try:
                loop.call_soon_threadsafe(finish, reply)
            except RuntimeError:
                pass  # The loop was closed while the reply was on its way: nobody waits any more.

        channel = _connected()
        channel.start(method, params, on_done)
        channel.pump()
        return read((await future).value())

    function.__name__ = function.__qualname__ = request.__name__.lstrip("_")
    return function


class _Group:
    def __init__(self, **members):
        self.__dict__.update(members)


def log(*message, level="info", data=None):
    """Writes to the log. Both `log(message)` and `log(level, message)` are understood."""
    parts = list(message)
    if len(parts) == 2 and parts[0] in _LEVELS:
        level = parts.pop(0)
    elif len(parts) == 2 and parts[1] in _LEVELS:
        level = parts.pop()
    params = {"level": level, "message": " ".join(str(part) for part in parts)}
    if data is not None:
        params["data"] = data
    _connected().notify("log", params)


def progress(current, total=None, message=None):
    """Reports progress, if the client asked for it."""
    params = {"current": current}
    if total is not None:
        params["total"] = total
    if message is not None:
        params["message"] = message
    _connected().notify("progress", params)


_chunks = 0


def stream(data, is_final=False):
    """Sends a part of the result ahead. The parts together are the result if none is sent."""
    global _chunks
    _connected().notify("stream/chunk", {"data": data, "index": _chunks, "is_final": is_final})
    _chunks += 1


async def _log(*message, **named):
    log(*message, **named)


async def _progress(*values, **named):
    progress(*values, **named)


def _namespace(form):
    return {
        "memory": _Group(get=form(_memory_get), set=form(_memory_set), list=form(_memory_list), delete=form(_memory_delete)),
        "tools": _Group(list=form(_tools_list)),
        "resources": _Group(list=form(_resources_list), read=form(_resources_read)),
        "call": form(_call),
        "search": form(_search),
        "describe": form(_describe),
        "ask": form(_ask),
        "sample": form(_sample),
        "roots": form(_roots),
    }


globals().update(_namespace(_waiting))
aio = _Group(log=_log, progress=_progress, **_namespace(_awaiting))
