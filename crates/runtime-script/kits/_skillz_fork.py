"""Isolation `call`: each call runs in a fork of the process that has imported the tool's module.

Two children wait ahead. Each has pipes of its own to this process, and none to the server: what it asks and answers is
passed on from here, one message at a time, for as long as its call lasts. Then it is ended, with all that it started,
before the next one has its turn. Whatever a call does to the interpreter goes with it. A file or a map that the module
opened while it was imported is the kernel's, and shared.
"""

import gc
import json
import os
import select
import signal

import _skillz_leftovers as leftovers
import _skillz_random as randomness

AHEAD = 2
# Seconds without a request after which the second child is forked.
LULL = 0.001
READY = b'{"jsonrpc":"2.0","method":"ready"}\n'
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"execute"'
# What a child's last line begins with.
LAST = b"="
# What only this process says to the server.
RESERVED = ("execute", "failed", "inspected", "lost", "ready", "spent")
CREATE_RULESET, RESTRICT_SELF = 444, 446
SET_DUMPABLE, SET_CHILD_SUBREAPER, SET_NO_NEW_PRIVS = 4, 36, 38
MAKE_BLOCK_DEVICES, SIGNALS = 1 << 11, 1 << 1


class Wall:
    """Keeps a call from its parent and its siblings: the kernel lets it signal, trace and look into nothing outside."""

    def __init__(self):
        import ctypes

        self._libc = ctypes.CDLL(None, use_errno=True)
        # Older kernels do not know how to keep signals in; there only the right to make block devices is handled, for
        # the sake of the wall that comes with any rule.
        for rights, length in (((0, 0, SIGNALS), 24), ((MAKE_BLOCK_DEVICES, 0, 0), 8)):
            rules = (ctypes.c_uint64 * 3)(*rights)
            self._rules = self._libc.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.c_size_t(length), 0)
            if self._rules >= 0:
                break
        self.hide(True)

    def adopt_strays(self):
        """Makes processes that let go of their parent children of this one, so that they can be found and ended."""
        self._libc.prctl(SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def hide(self, is_hidden):
        """Whether others of the same user may look into this process."""
        self._libc.prctl(SET_DUMPABLE, int(not is_hidden), 0, 0, 0)

    def enclose(self):
        if self._rules >= 0:
            self._libc.prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            self._libc.syscall(RESTRICT_SELF, self._rules, 0)
            os.close(self._rules)


class Lines:
    """What came in by a descriptor, by lines."""

    def __init__(self, descriptor):
        self.descriptor = descriptor
        self._bytes = bytearray()
        self._searched = 0

    def fill(self):
        """Reads once; False where nothing more will come."""
        part = os.read(self.descriptor, 1 << 18)
        self._bytes += part
        return bool(part)

    def take(self):
        """The next whole line, or None."""
        end = self._bytes.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._bytes)
            return None
        line = bytes(self._bytes[: end + 1])
        del self._bytes[: end + 1]
        self._searched = 0
        return line

    def __call__(self):
        """Waits for a line; empty where none will come."""
        while True:
            line = self.take()
            if line is not None:
                return line
            if not self.fill():
                return b""


def write_all(descriptor, data):
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view):]


class Child:
    """A fork that waits for its turn, which is a request in its pipe."""

    def __init__(self, serve):
        its_requests, self.requests = os.pipe()
        replies, its_replies = os.pipe()
        self.lines = Lines(replies)
        self.pending = bytearray()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self.close()
                serve(its_requests, its_replies)
            except BrokenPipeError:
                pass  # The parent has gone, and with it the worker.
            except BaseException:
                import traceback

                traceback.print_exc()
            finally:
                os._exit(70)
        os.close(its_requests)
        os.close(its_replies)
        os.set_blocking(self.requests, False)

    def send(self, data=b""):
        """Writes as much as fits into the pipe, and keeps the rest."""
        self.pending += data
        try:
            while self.pending:
                del self.pending[: os.write(self.requests, self.pending)]
        except BlockingIOError:
            pass
        except BrokenPipeError:
            self.pending.clear()  # That it is dead will show.

    def close(self):
        os.close(self.requests)
        os.close(self.lines.descriptor)


def may_be_passed_on(line):
    """Whether a child's line is a request or a notification, and nothing that only its parent says."""
    try:
        message = json.loads(line, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return False
    if not isinstance(message, dict) or not {"jsonrpc", "method"} <= set(message) <= {"jsonrpc", "id", "method", "params"}:
        return False
    return isinstance(message.get("id", ""), str) and isinstance(message["method"], str) and message["method"] not in RESERVED


class Parent:
    def __init__(self, caller):
        self._caller = caller
        self._pid = os.getpid()
        self._wall = Wall()
        self._requests, self._replies = Lines(caller.requests), caller.replies
        self._spares = []
        self._reseeding = None

    def serve(self):
        is_confined = self._caller.options.get("is_confined")
        before = leftovers.temporary_state() if is_confined else None
        self._wall.adopt_strays()
        self._reseeding = randomness.Reseeding()
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(self._wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)
        gc.collect()
        gc.freeze()
        self._spares += [Child(self._child) for _ in range(AHEAD)]
        while True:
            write_all(self._replies, READY)
            request = self._next_request()
            current = self._spares.pop(0) if self._spares else Child(self._child)
            current.send(request)
            answer = self._until_answered(current)
            if answer is None:
                answer = b'{"jsonrpc":"2.0","method":"lost","params":{"status":%d}}\n' % self._end(current.pid)
            else:
                kill(current.pid)
            # Its memory is given back while the answer is on its way.
            write_all(self._replies, answer)
            self._end(current.pid)
            current.close()
            self._end_strays()
            leftovers.empty_folder(self._caller.options["folder"])
            if is_confined and (before is None or leftovers.temporary_state() != before or leftovers.shares_memory()):
                # They go with the sandbox: the server starts a new worker.
                os._exit(0)

    def _next_request(self):
        """Waits for a request, and forks meanwhile: no call waits for a fork, unless it comes while one is made."""
        while True:
            line = self._requests.take()
            # Answers that came too late for the call before are passed over.
            if line is not None and line.startswith(REQUEST):
                return line
            if line is None:
                # One that is there will do for a while: whoever got the last answer may want the processor first.
                pause = LULL if self._spares and len(self._spares) < AHEAD else 0
                is_idle = not select.select([self._requests.descriptor], [], [], pause)[0]
                if is_idle and len(self._spares) < AHEAD:
                    self._spares.append(Child(self._child))
                    self._rehearse()
                else:
                    self._wait([], [])

    def _rehearse(self):
        """Touches what passing messages on touches: a fork leaves each page to be copied at its next change."""
        may_be_passed_on(b'{"jsonrpc":"2.0","id":"1-1","method":"tools/call","params":{"a":[1]}}\n')
        has_ended(self._spares[0].pid)
        select.select([self._requests.descriptor, self._woken], [], [], 0)

    def _wait(self, others, writable):
        """Waits for something to read or write; reads what the server sent."""
        ready, free, _ = select.select([self._requests.descriptor, self._woken] + others, writable, [])
        if self._requests.descriptor in ready and not self._requests.fill():
            os._exit(0)
        if self._woken in ready:
            try:
                os.read(self._woken, 4096)
            except BlockingIOError:
                pass
            self._replace_dead_spares()
        return ready, free

    def _replace_dead_spares(self):
        for spare in list(self._spares):
            if has_ended(spare.pid):
                os.waitpid(spare.pid, 0)
                self._spares.remove(spare)
                spare.close()

    def _until_answered(self, current):
        """Passes messages on until the call's child has answered; None where it died instead."""
        is_open = True
        while True:
            ready, free = self._wait([current.lines.descriptor] if is_open else [], [current.requests] if current.pending else [])
            if free:
                current.send()
            if current.lines.descriptor in ready:
                is_open = current.lines.fill()
            line = current.lines.take()
            while line is not None:
                if line.startswith(LAST):
                    return b'{"jsonrpc":"2.0","id":1,%s}\n' % line[len(LAST):-1]
                if may_be_passed_on(line):
                    write_all(self._replies, line)
                line = current.lines.take()
            line = self._requests.take()
            while line is not None:
                current.send(line)
                line = self._requests.take()
            if has_ended(current.pid) and not (is_open and select.select([current.lines.descriptor], [], [], 0)[0]):
                return None

    @staticmethod
    def _end(pid):
        kill(pid)
        try:
            return os.waitpid(pid, 0)[1]
        except ChildProcessError:
            return 0

    def _end_strays(self):
        """Kills what the call left behind. Orphans become children of this process, so that all can be found."""
        spares = {child.pid for child in self._spares}
        for _ in range(1000):
            try:
                with open("/proc/self/task/%d/children" % self._pid) as file:
                    strays = [int(pid) for pid in file.read().split() if int(pid) not in spares]
            except OSError:
                # They cannot be found here: the server starts a new worker, and ends this one with all it started.
                os._exit(0)
            if not strays:
                return
            for pid in strays:
                self._end(pid)
        os._exit(0)

    def _child(self, requests, replies):
        """One call, in a process of its own."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for descriptor in (self._requests.descriptor, self._replies, self._woken, self._wake):
            os.close(descriptor)
        for child in self._spares:
            child.close()
        os.setpgid(0, 0)
        self._wall.adopt_strays()
        self._wall.enclose()
        self._reseeding.in_fork()
        self._caller.warm_up()
        lines = Lines(requests)
        line = lines()
        if line:
            self._wall.hide(False)
            self._caller.serve_one(line, lines, replies, LAST)
            # Taking this process apart would only keep its parent from passing the answer on, which ends it then.
            signal.pause()
        os._exit(0)


def kill(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def has_ended(pid):
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
