"""Reads foreign files where their damage cannot do harm: in a child process with bounded memory and time,
as `longhaul` does. Errors of the HDF5 library are exceptions of many kinds, crashes, or endless loops."""

import os
import pickle
import resource
import select
import signal
import time
from pathlib import Path

from longhaul.errors import Failure

LEAST_BYTES = 2 << 30       # of memory, beyond what this process has
BYTES_PER_BYTE = 64         # of the file
LEAST_S = 120               # of processor time
WAIT_FACTOR = 10            # by the clock
CHUNK = 1 << 20


def contained(read, path):
    """What read(path) returns, which must be possible to pickle. Anything but a Failure of its own
    becomes one that names the file."""
    size = _size(path)
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        _answer(read, path, size, sink)
    os.close(sink)
    seconds = LEAST_S + size / 2**20
    answer = None
    try:
        answer = _all_of(source, time.monotonic() + WAIT_FACTOR * seconds)
    finally:
        os.close(source)
        if answer is None:  # too late, or we are interrupted; it is not reaped yet
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    kind, *values = pickle.loads(answer) if answer and status == 0 else ("none",)
    if kind == "value":
        return values[0]
    if kind == "failure":
        raise Failure(*values)
    why = values[0] if values else f"the reader ended with signal {os.WTERMSIG(status)}" \
        if os.WIFSIGNALED(status) else "the reader gave up"
    raise Failure(f"{path}: cannot be read ({why}; the file is damaged, or takes too much memory or "
                  "time). Check it with longhaul check.")


def _size(path):
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _answer(read, path, size, sink):
    """The child's whole life."""
    answer = ("none",)
    try:
        _limit(size)
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 2)  # what libraries say of damage
        answer = ("value", read(path))
    except Failure as failure:
        answer = ("failure", str(failure), failure.code)
    except BaseException as error:  # noqa: B902  (h5py raises anything)
        answer = ("damage", _name_of(error))
    try:
        with os.fdopen(sink, "wb") as file:
            pickle.dump(answer, file, protocol=5)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _name_of(error):
    """What happened, without the library's own text (HDF5's names its functions)."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return type(error).__name__


def _limit(size):
    own = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() \
        if Path("/proc/self/statm").exists() else 0
    used = sum(resource.getrusage(resource.RUSAGE_SELF)[:2])
    for what, bound in ((resource.RLIMIT_AS, own + max(LEAST_BYTES, BYTES_PER_BYTE * size)),
                        (resource.RLIMIT_CPU, int(used + LEAST_S + size / 2**20)),
                        (resource.RLIMIT_CORE, 0)):
        hard = resource.getrlimit(what)[1]
        bound = bound if hard == resource.RLIM_INFINITY else min(bound, hard)
        resource.setrlimit(what, (bound, hard))


def _all_of(source, until):
    """All that the child writes; None where it takes too long."""
    parts = []
    while True:
        left = until - time.monotonic()
        if left <= 0 or not select.select([source], [], [], left)[0]:
            return None
        part = os.read(source, CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)
