"""What calls leave behind on disk, and in memory that the kernel shares."""

import os

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


def empty_folder(folder):
    """Takes files away that a call left in its private folder."""
    names = os.listdir(folder)
    if not names:
        return
    import shutil

    def retry(function, path, _):
        os.chmod(os.path.dirname(path), 0o700)
        if not os.path.islink(path):
            os.chmod(path, 0o700)
        function(path)

    for name in (os.path.join(folder, name) for name in names):
        try:
            if os.path.isdir(name) and not os.path.islink(name):
                shutil.rmtree(name, onerror=retry)
            else:
                os.unlink(name)
        except OSError:
            os._exit(0)
