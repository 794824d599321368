"""Tries everything that a confined program should not be able to do, and what it should. Prints one JSON object.

Arguments: the host's port, a process id of the host, a private folder, a read-only and a writable folder, or "-".
"""
import ctypes, json, os, socket, sys

port, host_pid, private, read_only, writable, host_temporary = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
found = {}


def attempt(name, action):
    try:
        value = action()
        found[name] = "yes" if value is None or value is True else str(value)
    except OSError as error:
        found[name] = "no"
    except Exception as error:
        found[name] = type(error).__name__


def write(path):
    with open(path, "w") as file:
        file.write("x")


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(5)
        client.connect(address)


def call(function, *arguments):
    if function(*arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")


def own_loopback():
    with socket.create_server(("127.0.0.1", 0)) as server:
        connect(socket.AF_INET, server.getsockname())


def terminal():
    main, other = os.openpty()
    os.write(main, b"x\n")
    return os.read(other, 2) == b"x\n"


def child():
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7


def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return line.split()[1]


for folder in ["/usr", "/etc", "/", "/var", "/opt", "/dev", "/proc/sys/kernel", "/run", "/bin"]:
    attempt("write " + folder, lambda: write(os.path.join(folder, "x")))
attempt("write core_pattern", lambda: write("/proc/sys/kernel/core_pattern"))
attempt("shadow", lambda: open("/etc/shadow").read(1))
attempt("private file", lambda: open(os.path.join(private, "secret")).read(1))
attempt("private folder", lambda: len(os.listdir(private)) >= 0)
attempt("host temporary file", lambda: open(host_temporary).read(1))
attempt("homes", lambda: bool(os.listdir("/home") + os.listdir("/root")))
attempt("host process", lambda: os.kill(int(host_pid), 0))
attempt("host process list", lambda: os.listdir("/proc/" + host_pid) is None or "listed")
attempt("environment of the first process", lambda: open("/proc/1/environ").read(1))
attempt("memory of the first process", lambda: open("/proc/1/mem", "rb"))
attempt("kill the first process", lambda: os.kill(1, 9) is None and os.path.exists("/proc/1/stat") and "ignored")
attempt("host tcp", lambda: connect(socket.AF_INET, ("127.0.0.1", int(port))))
attempt("host abstract socket", lambda: connect(socket.AF_UNIX, "\0process-test-" + port))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
attempt("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
attempt("mount", lambda: call(libc.mount, b"none", b"/tmp", b"tmpfs", 0, None))
attempt("unshare user", lambda: call(libc.unshare, 0x10000000))
attempt("clone user", lambda: call(libc.syscall, 56 if os.uname().machine == "x86_64" else 220, 0x10000000 | 17, 0, 0, 0, 0))
attempt("chroot", lambda: os.chroot("/tmp"))
attempt("become root", lambda: os.setuid(0) if os.getuid() != 0 else "is root")
attempt("ptrace", lambda: call(libc.ptrace, 16, 1, 0, 0))
attempt("device", lambda: os.mknod("/tmp/device", 0o600 | 0o020000, os.makedev(1, 1)))
attempt("new terminal session", lambda: open("/dev/tty"))
attempt("read-only: read", lambda: open(os.path.join(read_only, "file")).read() == "shown\n")
attempt("read-only: write", lambda: write(os.path.join(read_only, "new")))
attempt("writable: write", lambda: write(os.path.join(writable, "made")))
attempt("writable: change", lambda: open(os.path.join(writable, "there"), "a").write("more") == 4)
attempt("writable: out by a link", lambda: open(os.path.join(writable, "link", "secret")).read(1))
attempt("temporary file", lambda: write("/tmp/x"))
attempt("shared memory", lambda: write("/dev/shm/x"))
attempt("null", lambda: write("/dev/null"))
attempt("random", lambda: len(open("/dev/urandom", "rb").read(4)) == 4)
attempt("stderr by name", lambda: open("/dev/stderr", "w").write("") == 0)
attempt("own loopback", own_loopback)
attempt("pseudo-terminal", terminal)
attempt("child", child)
attempt("cpu count", lambda: (os.cpu_count() or 0) > 0)
found["processes"] = len([name for name in os.listdir("/proc") if name.isdigit()])
found["environment"] = sorted(os.environ)
found["capabilities"] = [status("CapEff"), status("CapPrm"), status("CapBnd")]
found["new privileges"] = status("NoNewPrivs")
found["filter"] = status("Seccomp")
found["host name"] = os.uname().nodename
print(json.dumps(found))
