"""Keeps the processors of a virtual machine from halting while something is timed. One that halts
runs again when its host sees to it, on a shared host some milliseconds late. Here each has a program
to run that gives way to every other (SCHED_IDLE), and the 1-minute load is higher by as many."""

import contextlib
import os
import re
import select
import subprocess
import sys
from pathlib import Path

VARIABLE = "LONGHAUL_AWAKE"  # how many processors are held; records have it. 0: none is wanted
BETWEEN_LOOKS = 100_000      # turns, some milliseconds


def is_virtual(cpuinfo=Path("/proc/cpuinfo")):
    """Whether a hypervisor says that it runs this machine."""
    try:
        text = cpuinfo.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return re.search(r"^flags\s*:.*\bhypervisor\b", text, re.MULTILINE) is not None


def count():
    """How many processors are held, by whomever."""
    return int(os.environ.get(VARIABLE, "0"))


@contextlib.contextmanager
def held(wanted=True):
    """All processors that this process may use stay awake while the block runs, or until this
    process dies, however that dies. Nothing where it isn't `wanted`, or is done already."""
    if not wanted or VARIABLE in os.environ:
        yield
        return
    processors = sorted(os.sched_getaffinity(0))
    with contextlib.ExitStack() as stack:
        spinners = [stack.enter_context(_spinning(processor)) for processor in processors]
        for spinner in spinners:
            spinner.stdout.readline()
        os.environ[VARIABLE] = str(len(processors))
        stack.callback(os.environ.pop, VARIABLE)
        yield


@contextlib.contextmanager
def _spinning(processor):
    """Its standard input ends with us; its standard output has a line once it gives way."""
    with subprocess.Popen([sys.executable, "-S", "-E", __file__, str(processor)],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, start_new_session=True) as child:
        try:
            yield child
        finally:
            child.kill()


def spin(processor):
    """Until standard input ends."""
    os.sched_setaffinity(0, {processor})
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    print("gives way", flush=True)
    while not select.select([0], [], [], 0)[0]:
        for _ in range(BETWEEN_LOOKS):
            pass


if __name__ == "__main__":
    spin(int(sys.argv[1]))
