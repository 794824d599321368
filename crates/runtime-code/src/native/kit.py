"""What a program in a real Python finds: tools, `call`, `skillz`. Speaks the workers' protocol over stdin and stdout."""
import ast, json, os, struct, sys, threading

# `asyncio`, `traceback` and `linecache` are imported where they are needed: they take longer than most programs.
CO_COROUTINE = 0x80

# The pipes are the protocol's: whatever else the process or its children print goes to stderr.
_input, _output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
os.dup2(2, 1)

FILE_NAME = "code.py"


class ToolError(RuntimeError):
    """A tool's failure."""

    def __init__(self, message, data=None):
        super().__init__(message)
        self.data = data


class _Return(BaseException):
    def __init__(self, value):
        self.value = value


class Link:
    """Requests out, answers in. A thread reads, so that calls may overlap."""

    def __init__(self):
        self.lock = threading.Lock()
        self.changed = threading.Condition(self.lock)
        self.replies, self.waiting, self.next_id, self.run = {}, {}, 0, 0

    def read(self):
        prefix = _input.read(4)
        if len(prefix) < 4:
            os._exit(0)
        return json.loads(_input.read(struct.unpack("<I", prefix)[0]))

    def send(self, kind, **fields):
        self.send_text(json.dumps({kind: {"run": self.run, **fields}}))

    def send_text(self, text):
        data = text.encode("utf-8", "surrogatepass")
        with self.lock:
            _output.write(struct.pack("<I", len(data)) + data)
            _output.flush()

    def listen(self):
        while True:
            reply = self.read().get("Reply")
            if reply is None:
                continue
            with self.lock:
                waiting = self.waiting.pop(reply["id"], None)
                if waiting is None:
                    self.replies[reply["id"]] = reply["result"]
                    self.changed.notify_all()
            if waiting is not None:
                loop, future = waiting
                loop.call_soon_threadsafe(settle, future, reply["result"])

    def request(self, request):
        with self.lock:
            self.next_id += 1
            number = self.next_id
        self.send("Request", id=number, request=request)
        return number

    def wait(self, number):
        with self.lock:
            while number not in self.replies:
                self.changed.wait()
            return value_of(self.replies.pop(number))

    async def wait_later(self, number):
        import asyncio

        loop = asyncio.get_running_loop()
        with self.lock:
            if number in self.replies:
                return value_of(self.replies.pop(number))
            future = loop.create_future()
            self.waiting[number] = (loop, future)
        return value_of(await future)


def settle(future, result):
    if not future.done():
        future.set_result(result)


def value_of(result):
    if "Err" in result:
        raise ToolError(result["Err"]["message"], result["Err"].get("data"))
    return result["Ok"]


link = Link()


class Printer:
    """Stands for stdout: text goes to the server in the order in which it was printed."""

    encoding, errors, newlines = "utf-8", "replace", None

    def write(self, text):
        if text:
            link.send("Printed", text=str(text).encode("utf-8", "replace").decode())
        return len(text)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def flush(self):
        pass

    def isatty(self):
        return False

    def fileno(self):
        return 1


def plain(value, place="an argument"):
    """A value as JSON has it."""
    return json.loads(to_json(value, place)[0])


def call_request(name, arguments, named):
    return {"Call": {"name": name, "positional": [plain(value, "argument %d" % (index + 1)) for index, value in enumerate(arguments)],
                     "named": {key: plain(value, key) for key, value in named.items()}}}


def tool(name):
    def function(*arguments, **named):
        return link.wait(link.request(call_request(name, arguments, named)))

    function.__name__ = name
    return function


def tool_later(name):
    def function(*arguments, **named):
        return link.wait_later(link.request(call_request(name, arguments, named)))

    function.__name__ = name
    return function


def named_arguments(arguments, named):
    if arguments is not None and not isinstance(arguments, dict):
        raise TypeError('call() takes a tool\'s name and its arguments: call("name", {"argument": 1})')
    return {**(arguments or {}), **named}


def call(name, arguments=None, **named):
    return link.wait(link.request(call_request(name, (), named_arguments(arguments, named))))


def call_later(name, arguments=None, **named):
    return link.wait_later(link.request(call_request(name, (), named_arguments(arguments, named))))


def request(method, params):
    return link.wait(link.request({"Host": {"method": method, "params": plain(params, "params")}}))


def sleep(seconds, result=None):
    import asyncio

    return asyncio.sleep(seconds, result)


async def value_later(value):
    return value


def future(value):
    return value if hasattr(value, "__await__") or hasattr(value, "cr_await") else value_later(value)


def futures(values):
    return [future(value) for value in values]


def task(value, **options):
    import asyncio

    awaitable = future(value)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        # Nothing runs yet: it starts where it is awaited.
        return awaitable
    return asyncio.create_task(awaitable, **options) if asyncio.iscoroutine(awaitable) else asyncio.ensure_future(awaitable)


def gather(*items, **options):
    import asyncio

    return asyncio.gather(*[future(item) for item in items], **options)


async def run_later(value):
    return await future(value)


def give_back(value=None):
    raise _Return(value)


def refuse():
    """Refuses what programs without a process of their own cannot do either: files elsewhere, processes, connections."""
    roots = {os.path.realpath(path) for path in (os.getcwd(), sys.prefix, sys.base_prefix, sys.exec_prefix, os.path.dirname(os.__file__))}
    roots |= {"/usr/lib", "/usr/share/zoneinfo", "/usr/local/lib", "/lib", "/lib64", "/dev/null", "/dev/urandom", "/dev/shm", "/etc/localtime",
              "/etc/ld.so.cache", "/proc/self", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices/system/cpu"}
    processes = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.kill", "pty.", "socket.connect", "socket.bind",
                 "socket.getaddrinfo", "socket.sendto", "ctypes.dlopen/")
    message = "programs have no files, no network and no processes here; call a tool, or use runtime \"process\""

    def is_inside(path):
        real = os.path.realpath(os.fsdecode(path))
        return any(real == root or real.startswith(root.rstrip("/") + "/") for root in roots)

    def hook(event, arguments):
        if event in ("open", "os.listdir", "os.scandir"):
            path = arguments[0]
            if isinstance(path, (str, bytes)) and not is_inside(path):
                raise PermissionError(f"{os.fsdecode(path)}: {message}")
        elif event.startswith(processes):
            raise PermissionError(f"{event}: {message}")

    sys.addaudithook(hook)


KIT = '''
class _Memory:
    def get(self, key): return _skillz_request("memory/get", {"key": key})["value"]
    def set(self, key, value, ttl=None): _skillz_request("memory/set", {"key": key, "value": value, "ttl": ttl})
    def list(self, prefix=""): return _skillz_request("memory/list", {"prefix": prefix})["keys"]
    def delete(self, key): return _skillz_request("memory/delete", {"key": key})["deleted"]
class _Resources:
    def list(self): return _skillz_request("resources/list", {})
    def read(self, uri): return _skillz_request("resources/read", {"uri": uri})
class _Skillz:
    memory, resources = _Memory(), _Resources()
    def call(self, name, arguments=None, **named): return call(name, arguments, **named)
    def search(self, query): return _skillz_request("tools/list", {"query": query})["tools"]
    def describe(self, name): return _skillz_request("tools/describe", {"name": name})
    def log(self, message, level="info", data=None):
        _skillz_request("log", {"level": level, "message": str(message), "data": data})
    def progress(self, current, total=None, message=None):
        _skillz_request("progress", {"current": current, "total": total, "message": message})
    def ask(self, message, schema):
        answer = _skillz_request("elicitation/create", {"message": message, "requestedSchema": schema})
        if answer["action"] != "accept": raise ToolError("The user did not answer: " + answer["action"])
        return answer["content"]
    def sample(self, prompt, max_tokens=1000):
        message = {"role": "user", "content": {"type": "text", "text": prompt}}
        content = _skillz_request("sampling/createMessage", {"messages": [message], "maxTokens": max_tokens})["content"]
        parts = content if isinstance(content, list) else [content]
        return "".join(part.get("text", "") for part in parts)
skillz = _Skillz()
'''


def namespace_for(tools):
    names = {"__name__": "__main__", "__builtins__": __builtins__, "ToolError": ToolError, "call": call,
             "call_skillz_later": call_later, "_skillz_request": request, "_skillz_return": give_back, "_skillz_sleep": sleep,
             "_skillz_future": future, "_skillz_futures": futures, "_skillz_task": task, "_skillz_gather": gather, "_skillz_run": run_later,
             # Only the embedded interpreter has to open answers: here they raise by themselves.
             "_skillz_open": lambda answer: answer}
    for name in tools:
        if name not in names and not hasattr(__builtins__, name):
            names[name], names[name + "_skillz_later"] = tool(name), tool_later(name)
    exec(compile(KIT, "<skillz>", "exec"), names)
    return names


def execute(program):
    tree = ast.parse(program["code"], FILE_NAME)
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        target = ast.copy_location(ast.Name("_skillz_result", ast.Store()), last)
        tree.body[-1] = ast.copy_location(ast.Assign([target], last.value), last)
    code = compile(tree, FILE_NAME, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    names = namespace_for(program["tools"])
    if code.co_flags & CO_COROUTINE:
        import asyncio

        asyncio.run(eval(code, names))
    else:
        exec(code, names)
    return names.get("_skillz_result")


def failure(error, source):
    import linecache, traceback

    linecache.cache[FILE_NAME] = (len(source), None, source.splitlines(True), FILE_NAME)
    frames = traceback.extract_tb(error.__traceback__)
    # Without columns: those of the prepared program are not those of the original.
    frames = [traceback.FrameSummary(FILE_NAME, frame.lineno, frame.name) for frame in frames if frame.filename == FILE_NAME]
    kind, line = "Exception", frames[-1].lineno if frames else None
    if isinstance(error, MemoryError):
        kind = "Memory"
    if isinstance(error, SyntaxError) and error.filename == FILE_NAME and not frames:
        # The whole form would show the prepared program.
        kind, line = "Syntax", error.lineno
        summary = f"SyntaxError: {error.msg}"
    else:
        summary = "".join(traceback.format_exception_only(type(error), error)).strip().replace("__main__.", "")
    # What a tool said stands in the message, and is not said again.
    last = "ToolError" if type(error) is ToolError else summary
    text = "Traceback (most recent call last):\n" + "".join(traceback.format_list(frames[-20:])) + last
    first, *rest = summary.splitlines() or [""]
    message = "\n".join([f"{first} (line {line})" if line else first, *rest])
    return {"kind": kind, "message": message, "traceback": text}


def main():
    program = link.read()["Run"]
    link.run = program["run"]
    source = program.get("original") or program["code"]
    sys.stdout = Printer()
    threading.Thread(target=link.listen, daemon=True).start()
    if sys.argv[-1] == "strict":
        refuse()
    try:
        try:
            result = execute(program)
        except _Return as returned:
            result = returned.value
        except SystemExit as end:
            if end.code not in (None, 0):
                raise
            result = None
        text, note = to_json(result)
        if note is not None:
            request("log", {"level": "warning", "message": note, "data": None})
        link.send_text('{"Done":{"run":%s,"result":%s}}' % (json.dumps(link.run), text))
    except NoJson as error:
        link.send("Failed", failure={"kind": "Exception", "message": str(error), "traceback": ""})
    except BaseException as error:
        link.send("Failed", failure=failure(error, source))
    os._exit(0)


main()
