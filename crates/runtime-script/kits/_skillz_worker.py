"""The program behind Python function scripts: imports a tool's module once, and calls its `run` again and again.

    python _skillz_worker.py '{"entry": "/path/main.py", "mode": "serve", "isolation": "call"}'

Requests come on stdin, replies go to stdout, one JSON-RPC line each. Both are moved out of the way first, so that
whatever the tool prints lands in the log, and nothing of it between the replies.

`serve` with isolation `call`: each call runs in a fork of its own, see `_skillz_fork`. With isolation `worker`: calls
run here, one after another, and share whatever the module and its libraries keep.

`program`: like `serve`, but what each call runs is a program of `execute_code`, which comes with it.

`inspect`: reports schemas made of the signature, and ends.
"""

import json
import os
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))

import _skillz_failure as failures
import _skillz_fork as fork
import _skillz_leftovers as leftovers
import _skillz_random as randomness
import _skillz_signature as signatures
import _skillz_values as values

def protect_channel(is_program):
    """Moves the channel to descriptors that neither the tool nor its children use. Only a program's stdout is its own."""
    line = os.environ.pop("SKILLZ_HOST_FD", "0,1") if is_program else "0,1"
    taken = [int(number) for number in line.split(",")]
    requests, replies = map(os.dup, taken)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    if is_program:
        for number in taken:
            os.close(number)
    else:
        os.dup2(2, 1)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True, write_through=False)
    return requests, replies


def load(entry):
    """Imports the tool's module, as if it lay on the path."""
    import importlib.util

    folder, file = os.path.split(entry)
    sys.path[:] = [folder] + [place for place in sys.path if os.path.abspath(place or ".") != HERE]
    sys.argv = [entry]
    name = os.path.splitext(file)[0]
    if name in sys.modules or name in getattr(sys, "stdlib_module_names", ()):
        name = "skillz_tool_" + name
    # A source file may have any extension.
    from importlib.machinery import SourceFileLoader

    spec = importlib.util.spec_from_file_location(name, entry, loader=SourceFileLoader(name, entry))
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find_run(module):
    run = getattr(module, "run", None)
    if not callable(run):
        raise LookupError("The script defines no function `run` at top level")
    return run


class Threads(Exception):
    """A module cannot be forked, since threads do not come along."""


def refuse_threads():
    others = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
    if others:
        raise Threads("The script starts threads while it is imported (%s), and no call of its own process has them. Start them within `run`, "
                      "or register the script with `isolation: \"worker\"`: then all calls run in the process that has the threads" % ", ".join(others[:3]))


def failure(error, entry):
    if isinstance(error, (signatures.BadArgument, values.NoJson)):
        what = "The arguments do not fit" if isinstance(error, signatures.BadArgument) else "The result cannot be sent"
        return {"message": "%s: %s" % (what, error), "kind": type(error).__name__}
    if isinstance(error, Threads):
        return {"message": str(error), "kind": "Threads"}
    if isinstance(error, SystemExit):
        return {"message": "`run` ended the program with `sys.exit(%r)`; return a value or raise an exception" % (error.code,),
                "kind": "SystemExit"}
    return failures.describe(error, entry)


def notify(descriptor, method, params):
    fork.write_all(descriptor, json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")


class Caller:
    """Holds the loaded module and serves one request at a time."""

    def __init__(self, options, requests, replies):
        self.options, self.requests, self.replies = options, requests, replies
        self.entry = options["entry"]
        self._loop = None
        randomness.watch()
        run = find_run(load(self.entry))
        self._binder = signatures.Binder(run)
        if signatures.is_coroutine(run):
            import asyncio  # Here, so that no call pays for it.

    def warm_up(self):
        """Touches what a call touches, so that a fork has its own copies of those pages before its turn."""
        skillz._attach(skillz._Channel(None, None), {})
        text, _ = values.to_json(json.loads('{"a":[1.5,"b"],"c":{"d":null}}'))
        b'"result":' + text.encode()
        skillz._attach(None, None)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()

    def serve_one(self, line, lines, replies, last=None):
        """Answers the request in `line`: as JSON-RPC, or by its body behind `last`."""
        lock = threading.Lock()

        def write(data):
            with lock:
                fork.write_all(replies, data)

        channel = skillz._Channel(lines, write)
        params = json.loads(line).get("params", {})
        skillz._attach(channel, params.get("context") or {})
        try:
            text, note = values.to_json(self._run(params.get("arguments") or {}))
            if note is not None:
                print(note, file=sys.stderr)
            body = b'"result":' + text.encode()
        except BaseException as error:
            if isinstance(error, SystemExit) and error.code in (None, 0):
                body = b'"result":null'
            else:
                told = self._failure(error)
                body = b'"error":' + json.dumps({"code": -32000, "message": told.pop("message"), "data": told}).encode()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        write(b'{"jsonrpc":"2.0","id":1,%s}\n' % body if last is None else last + body + b"\n")

    def _failure(self, error):
        return failure(error, self.entry)

    def _run(self, arguments):
        value = self._binder.call(arguments)
        if hasattr(value, "__await__"):
            import asyncio

            async def finished():
                return await value

            if self.options.get("isolation") != "worker":
                return asyncio.run(finished())
            # What a call keeps for the next one, such as a connection, belongs to the loop that it was made in.
            self._loop = self._loop or asyncio.new_event_loop()
            value = self._loop.run_until_complete(finished())
        return value

    def serve_all(self):
        folder, lines = os.getcwd(), fork.Lines(self.requests)
        while True:
            fork.write_all(self.replies, fork.READY)
            line = lines()
            # Answers that came too late for the call before are passed over.
            while line and not line.startswith(fork.REQUEST):
                line = lines()
            if not line:
                os._exit(0)
            self.serve_one(line, lines, self.replies)
            skillz._attach(None, None)
            os.chdir(folder)
            leftovers.empty_folder(self.options["folder"])


class Programs(Caller):
    """Serves programs of `execute_code`, each in a fork of its own."""

    def __init__(self, options, requests, replies):
        self.options, self.requests, self.replies = options, requests, replies
        randomness.watch()
        import _skillz_program

        self._program = _skillz_program
        _skillz_program.adapt_asyncio()
        sys.path[:] = [""] + [place for place in sys.path if os.path.abspath(place or ".") != HERE]
        sys.argv = [_skillz_program.FILE]

    def warm_up(self):
        super().warm_up()
        self._program.warm_up()

    def _run(self, arguments):
        return self._program.run(arguments["code"], arguments["tools"])

    def _failure(self, error):
        if isinstance(error, values.NoJson):
            return {"message": "The program's result cannot be given back: %s" % error, "kind": "NoJson"}
        return self._program.describe(error)


def signature_only(entry):
    """The module's definitions without running its statements: what `run` looks like where it cannot be imported."""
    import ast
    import types

    with open(entry, "rb") as file:
        tree = ast.parse(file.read(), entry)
    module = types.ModuleType("skillz_tool")
    sys.modules["skillz_tool"] = module
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name != "run":
                continue
            node.decorator_list = []
            docstring = node.body[:1] if ast.get_docstring(node) is not None else []
            node.body = docstring + [ast.Pass(lineno=node.lineno, col_offset=0)]
        elif not isinstance(node, (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Assign, ast.AnnAssign)):
            continue
        try:
            exec(compile(ast.Module([node], []), entry, "exec"), module.__dict__)
        except Exception:
            continue
    return module


def inspect_module(options, replies):
    entry = options["entry"]
    report = {}
    try:
        module = load(entry)
        if options.get("isolation") != "worker":
            refuse_threads()
    except Threads as error:
        notify(replies, "inspected", {"failure": failure(error, entry)})
        return
    except BaseException as error:
        report["failure"] = failure(error, entry)
        if isinstance(error, (SyntaxError, ModuleNotFoundError)) or options.get("strict"):
            notify(replies, "inspected", report)
            return
        module = signature_only(entry)
    try:
        run = find_run(module)
        report["input_schema"] = signatures.input_schema(run)
        report["output_schema"] = signatures.output_schema(run)
    except Exception as error:
        report.setdefault("failure", failure(error, entry))
    notify(replies, "inspected", report)


def main():
    global skillz
    options = json.loads(sys.argv[1])
    requests, replies = protect_channel(options["mode"] == "program")
    import skillz

    skillz._attach(None, None)
    if options["mode"] == "inspect":
        inspect_module(options, replies)
        sys.stdout.flush()
        os._exit(0)
    try:
        caller = (Programs if options["mode"] == "program" else Caller)(options, requests, replies)
        if options.get("isolation") == "worker":
            caller.serve_all()
        refuse_threads()
        fork.Parent(caller).serve()
    except BaseException as error:
        notify(replies, "failed", failure(error, options["entry"]))
        sys.stdout.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
