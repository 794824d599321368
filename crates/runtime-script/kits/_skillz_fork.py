"""Isolation `call`: each call runs in a fork of the process that has imported the tool's module.

Two children wait ahead. The one whose turn it is reads one request, runs it, replies, and says on a pipe of its own
that it is done; then it is ended, with all that it started, before the next one has its turn. Whatever a call does to
the interpreter goes with it. A file or a map that the module opened while it was imported is the kernel's, and shared.
"""

import gc
import json
import os
import select
import signal

import _skillz_random as randomness

AHEAD = 2
READY = b'{"jsonrpc":"2.0","method":"ready"}\n'
CREATE_RULESET, RESTRICT_SELF = 444, 446
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


class Wall:
    """Keeps a call from its parent and its siblings: the kernel lets it signal, trace and look into nothing outside."""

    def __init__(self):
        import ctypes

        self._libc = ctypes.CDLL(None, use_errno=True)
        # Landlock: no access to files or network is handled here, only signals and abstract sockets are scoped.
        rules = (ctypes.c_uint64 * 3)(0, 0, 3)
        self._rules = self._libc.syscall(CREATE_RULESET, ctypes.byref(rules), ctypes.sizeof(rules), 0)

    def adopt_strays(self):
        """Makes processes that let go of their parent children of this one, so that they can be found and ended."""
        self._libc.prctl(36, 1, 0, 0, 0)

    def raise_it(self):
        if self._rules >= 0:
            self._libc.prctl(38, 1, 0, 0, 0)
            self._libc.syscall(RESTRICT_SELF, self._rules, 0)
            os.close(self._rules)


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
            except BrokenPipeError:
                pass  # The parent has gone, and with it the worker.
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
        self._turn = None

    def close(self):
        os.close(self.done)
        if self._turn is not None:
            os.close(self._turn)


class Parent:
    def __init__(self, caller):
        self._caller = caller
        self._pid = os.getpid()
        self._wall = Wall()
        self._spares = []
        self._reseeding = None

    def serve(self):
        is_confined = self._caller.options.get("is_confined")
        before = temporary_state() if is_confined else None
        self._wall.adopt_strays()
        self._reseeding = randomness.Reseeding()
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        gc.collect()
        gc.freeze()
        self._fill_up()
        while True:
            current = self._spares.pop(0)
            current.take_turn()
            os.write(self._caller.replies, READY)
            self._fill_up()
            word = self._until_done(current)
            if word == b"e":
                os._exit(0)
            status = self._end(current.pid)
            current.close()
            self._end_strays()
            if word != b"d":
                lost = {"jsonrpc": "2.0", "method": "lost", "params": {"status": status}}
                os.write(self._caller.replies, json.dumps(lost).encode() + b"\n")
            empty_folder()
            if is_confined and (before is None or temporary_state() != before or shares_memory()):
                # They go with the sandbox: the server starts a new worker.
                os._exit(0)

    def _fill_up(self):
        """Forks while a call is under way, so that none waits for a fork."""
        while len(self._spares) < AHEAD:
            child = Child(self._child)
            self._spares.append(child)

    def _until_done(self, current):
        """Waits until the call's child is done, or dead, and replaces spares that died."""
        while True:
            ready, _, _ = select.select([current.done, self._woken], [], [])
            if current.done in ready:
                return os.read(current.done, 1)
            try:
                os.read(self._woken, 4096)
            except BlockingIOError:
                pass
            if os.waitid(os.P_PID, current.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
                return b""
            for spare in list(self._spares):
                if os.waitid(os.P_PID, spare.pid, os.WEXITED | os.WNOHANG) is not None:
                    self._spares.remove(spare)
                    spare.close()
            self._fill_up()

    @staticmethod
    def _end(pid):
        try:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]
        except (ProcessLookupError, ChildProcessError):
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

    def _child(self, turn, done):
        """One call, in a process of its own."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for child in self._spares:
            child.close()
        os.setpgid(0, 0)
        self._wall.adopt_strays()
        self._wall.raise_it()
        self._reseeding.in_fork()
        self._caller.warm_up()
        if not os.read(turn, 1):
            os._exit(0)
        os.close(turn)
        if self._caller.serve_one() is None:
            os.write(done, b"e")
            os._exit(0)
        os.write(done, b"d")
        os._exit(0)


def empty_folder():
    """Takes files away that a call left in its working folder."""
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
