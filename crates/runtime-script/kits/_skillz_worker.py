"""The program behind Python function scripts: imports a tool's module once and runs each call in a fork.

    python _skillz_worker.py '{"entry": "/path/main.py", "mode": "serve"}'

Requests come on stdin, replies go to stdout, one JSON-RPC line each. Both are moved out of the way first, so that
whatever the tool prints lands in the log, and nothing of it between the replies.

`serve`: the parent imports the module and forks a child ahead of each call. A child waits for its turn, says
`ready`, reads one request, runs it, replies, and tells the parent through a pipe of their own that it is done. The
parent takes away what the call left behind (processes, files) before the next child has its turn.

A module that starts threads while it is imported cannot be forked: then each child imports it itself, ahead of its turn.

A module in which no call can leave anything behind (`_skillz_pure`) is called many times in one child.

`inspect`: reports schemas made of the signature, and ends.
"""

import gc
import json
import os
import select
import signal
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))

import _skillz_pure as pure
import _skillz_results as results
import _skillz_signature as signatures

READY = b'{"jsonrpc":"2.0","method":"ready"}\n'
BEGUN = b'{"jsonrpc":"2.0","method":"begun"}\n'
# Calls of one child where calls may share it: bounds what interpreter and libraries accumulate.
MOST_CALLS = 1000


class Lines:
    """Reads lines from a file descriptor."""

    def __init__(self, descriptor):
        self._descriptor = descriptor
        self._bytes = bytearray()
        self._searched = 0

    def __call__(self):
        while True:
            end = self._bytes.find(b"\n", self._searched)
            if end >= 0:
                line = bytes(self._bytes[: end + 1])
                del self._bytes[: end + 1]
                self._searched = 0
                return line
            self._searched = len(self._bytes)
            part = os.read(self._descriptor, 1 << 16)
            if not part:
                return b""
            self._bytes += part


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]


def protect_channel():
    """Moves stdin and stdout to descriptors that neither the tool nor its children use."""
    requests, replies = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
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


def describe(error, entry):
    """An exception as message and traceback, without the frames of the worker and of asyncio's machinery."""
    import traceback

    def foreign(frame):
        return not (frame.filename.startswith(HERE + os.sep) or os.path.join("asyncio", "") in frame.filename
                    or frame.filename.startswith("<frozen importlib") or os.path.dirname(frame.filename) == KIT)

    report = traceback.TracebackException(type(error), error, error.__traceback__)
    pending, seen = [report], set()
    while pending:
        part = pending.pop()
        if part is None or id(part) in seen:
            continue
        seen.add(id(part))
        part.stack = traceback.StackSummary.from_list([frame for frame in part.stack if foreign(frame)])
        pending += [part.__cause__, part.__context__]
    text = "".join(report.format()).replace(os.path.dirname(entry) + os.sep, "")
    message = "".join(report.format_exception_only()).strip()
    return {"message": message, "kind": type(error).__name__, "traceback": text}


def failure(error, entry):
    if isinstance(error, (signatures.BadArgument, results.NoJson)):
        what = "The arguments do not fit" if isinstance(error, signatures.BadArgument) else "The result cannot be sent"
        return {"message": "%s: %s" % (what, error), "kind": type(error).__name__}
    if isinstance(error, SystemExit):
        return {"message": "`run` ended the program with `sys.exit(%r)`; return a value or raise an exception" % (error.code,),
                "kind": "SystemExit"}
    return describe(error, entry)


def notify(descriptor, method, params):
    write_all(descriptor, json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode() + b"\n")


# Where a call of a confined tool can leave something for the next one, besides its working folder.
TEMPORARY = ("/tmp", "/dev/shm")
SHARED_MEMORY = ("/proc/sysvipc/shm", "/proc/sysvipc/msg", "/proc/sysvipc/sem")


# More entries than this are not looked through: the worker is taken for changed.
MOST_ENTRIES = 1000


def temporary_state():
    """What lies in the temporary folders, so that a change shows; `None` where there is too much to tell."""
    state = []
    for folder in TEMPORARY:
        if not os.path.isdir(folder):
            continue
        device = os.stat(folder).st_dev
        pending = [folder]
        while pending:
            try:
                entries = sorted(os.scandir(pending.pop()), key=lambda entry: entry.path)
            except OSError:
                continue
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                # What is mounted there belongs to somebody else and cannot be written to, or is the tool's own.
                if status.st_dev != device:
                    continue
                state.append((entry.path, status.st_ino, status.st_mode))
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    state[-1] += (status.st_size, status.st_mtime_ns)
                if len(state) > MOST_ENTRIES:
                    return None
    return state


def shares_memory():
    """Whether there is System V shared memory, a queue or a semaphore: each file begins with a line of headings."""
    for path in SHARED_MEMORY:
        try:
            with open(path) as file:
                if len(file.readlines()) > 1:
                    return True
        except OSError:
            pass
    return False


libc = None


def become_subreaper():
    """Makes processes that a call lets go of children of this one, so that they can be found and ended."""
    try:
        import ctypes

        global libc
        libc = libc or ctypes.CDLL(None, use_errno=True)
        libc.prctl(36, 1, 0, 0, 0)
    except Exception:
        pass


class Child:
    """A fork that waits for its turn."""

    def __init__(self, serve):
        turn_read, self._turn = os.pipe()
        self.done, done_write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                os.close(self._turn)
                os.close(self.done)
                serve(turn_read, done_write)
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(70)
        os.close(turn_read)
        os.close(done_write)

    def take_turn(self):
        os.write(self._turn, b".")
        os.close(self._turn)

    def close(self):
        os.close(self.done)


class Parent:
    def __init__(self, options, requests, replies):
        self._entry = options["entry"]
        self._requests = requests
        self._replies = replies
        self._parent = os.getpid()
        self._options = options
        self._binder = None
        self._shared = None
        self._past = []
        self._temporary = None

    def _load(self):
        module = load(self._entry)
        run = find_run(module)
        self._binder = signatures.Binder(run)
        self._shared = pure.examine(self._entry, module)
        if signatures.is_coroutine(run):
            import asyncio  # Here, so that no call pays for it.

    def _begin_anew(self):
        """Starts this program again, without the module and the threads that it has started."""
        for descriptor, standard in ((self._requests, 0), (self._replies, 1)):
            os.dup2(descriptor, standard)
        options = json.dumps(dict(self._options, loads_in_children=True))
        arguments = list(getattr(sys, "orig_argv", [sys.executable] + sys.argv))
        os.execv(sys.executable, [sys.executable] + arguments[1:-1] + [options])

    def serve(self):
        if not self._options.get("loads_in_children"):
            self._load()
            if threading.active_count() > 1:
                self._begin_anew()
        become_subreaper()
        is_confined = self._options.get("is_confined")
        self._temporary = temporary_state() if is_confined else None
        woken, wake = os.pipe()
        os.set_blocking(woken, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        gc.collect()
        if hasattr(gc, "freeze"):
            gc.freeze()
        spare = Child(self._child)
        while True:
            current, spare = spare, None
            current.take_turn()
            spare = Child(self._child)
            spare = self._until_done(current, spare, woken)
            current.close()
            self._past = [pid for pid in self._past + [current.pid] if self._reap(pid) is None]
            self._empty_folder()
            if is_confined and (self._temporary is None or temporary_state() != self._temporary or shares_memory()):
                # They go with the sandbox: the server starts a new worker.
                os._exit(0)

    def _until_done(self, current, spare, woken):
        """Waits until the call's child is done or dead. Gives the spare child, a new one if it died meanwhile."""
        while True:
            ready, _, _ = select.select([current.done, woken], [], [])
            word = os.read(current.done, 1) if current.done in ready else None
            if word == b"c":
                return spare
            if woken in ready:
                try:
                    os.read(woken, 4096)
                except BlockingIOError:
                    pass
                self._past = [pid for pid in self._past if self._reap(pid) is None]
            status = self._reap(current.pid)
            if word is not None or status is not None:
                # Not clean, or dead: nothing of it may live when the next one has its turn.
                if word == b"d":
                    status = 0
                status = self._end(current.pid) if status is None else status
                self._end_strays(spare.pid)
                if word != b"d":
                    notify(self._replies, "lost", {"status": status})
                return spare
            if self._reap(spare.pid) is not None:
                spare.close()
                spare = Child(self._child)

    @staticmethod
    def _reap(pid):
        try:
            ended, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        return status if ended else None

    @staticmethod
    def _end(pid):
        try:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]
        except (ProcessLookupError, ChildProcessError):
            return 0

    def _end_strays(self, spare):
        """Kills what the call left behind. Orphans become children of this process, so that all can be found."""
        for _ in range(1000):
            try:
                with open("/proc/self/task/%d/children" % self._parent) as file:
                    strays = [int(pid) for pid in file.read().split() if int(pid) != spare]
            except OSError:
                # They cannot be found here: the server starts a new worker, and ends this one with all it started.
                os._exit(0)
            if not strays:
                return
            for pid in strays:
                self._end(pid)
        os._exit(0)

    @staticmethod
    def _empty_folder():
        names = os.listdir(".")
        if not names:
            return
        import shutil

        def retry(function, path, _):
            os.chmod(os.path.dirname(path), 0o700)
            if not os.path.islink(path):
                os.chmod(path, 0o700)
            function(path)

        for name in names:
            try:
                if os.path.isdir(name) and not os.path.islink(name):
                    shutil.rmtree(name, onerror=retry)
                else:
                    os.unlink(name)
            except OSError:
                os._exit(0)

    def _child(self, turn, done):
        """One call, in a process of its own."""
        broken = None
        if self._binder is None:
            try:
                self._load()
            except BaseException as error:
                broken = failure(error, self._entry)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgid(0, 0)
        become_subreaper()
        lines, write = Lines(self._requests), self._locked_write()
        results.encode(json.loads(b'{"a":[1]}'))  # What this touches is copied now, and not in the call.
        if not os.read(turn, 1):
            os._exit(0)
        os.close(turn)
        if broken is not None:
            notify(self._replies, "failed", broken)
            os._exit(1)
        for _ in range(MOST_CALLS):
            is_clean = self._call(skillz._Channel(lines, write))
            if self._shared is None or not is_clean:
                break
            self._shared.make_anew()
        os.write(done, b"c" if is_clean else b"d")
        os._exit(0)

    def _call(self, channel):
        """Serves one request. Tells whether nothing of it is left."""
        write_all(self._replies, READY)
        request = None
        while request is None:
            # Replies that came too late for the call before are passed over.
            channel._read_one()
            request = channel.request
        if not request:
            os.kill(self._parent, signal.SIGKILL)
        params = request.get("params", {})
        skillz._attach(channel, params.get("context") or {})
        self._own_threads = threading.active_count()
        write_all(self._replies, BEGUN)
        try:
            self._reseed()
            body = b'"result":' + results.encode(self._run(params.get("arguments") or {}))
        except BaseException as error:
            if isinstance(error, SystemExit) and error.code in (None, 0):
                body = b'"result":null'
            else:
                told = failure(error, self._entry)
                body = b'"error":' + json.dumps({"code": -32000, "message": told.pop("message"), "data": told}).encode()
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass
        self._write(b'{"jsonrpc":"2.0","id":%s,%s}\n' % (json.dumps(request.get("id")).encode(), body))
        return self._is_clean(channel)

    def _run(self, arguments):
        value = self._binder.call(arguments)
        if hasattr(value, "__await__"):
            import asyncio

            async def finished():
                return await value

            value = asyncio.run(finished())
        return value

    def _locked_write(self):
        lock = threading.Lock()

        def write(data):
            with lock:
                write_all(self._replies, data)

        self._write = write
        return write

    @staticmethod
    def _reseed():
        # Python reseeds `random` after a fork itself.
        numpy_random = sys.modules.get("numpy.random")
        if numpy_random is not None:
            numpy_random.seed()

    def _is_clean(self, channel):
        """Whether neither threads nor processes nor unanswered requests of the call are left."""
        if channel.outstanding() or threading.active_count() > self._own_threads:
            return False
        while True:
            try:
                if os.waitpid(-1, os.WNOHANG)[0] == 0:
                    return False
            except ChildProcessError:
                return True


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
    global skillz, KIT
    options = json.loads(sys.argv[1])
    requests, replies = protect_channel()
    import skillz

    KIT = os.path.dirname(os.path.abspath(skillz.__file__))
    skillz._attach(None, None)
    if options["mode"] == "inspect":
        inspect_module(options, replies)
        sys.stdout.flush()
        os._exit(0)
    try:
        Parent(options, requests, replies).serve()
    except BaseException as error:
        notify(replies, "failed", failure(error, options["entry"]))
        sys.stdout.flush()
        os._exit(1)


if __name__ == "__main__":
    main()
