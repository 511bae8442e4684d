"""Programs that a command starts: a signal that ends the command ends them first, as their own
handlers want it. mpirun cleans up shared memory and its ranks, which a SIGKILL leaves."""

import contextlib
import ctypes
import os
import signal
import subprocess
import time

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PATIENCE_S = 12  # for what mpirun does after SIGTERM; a job of Slurm waits 20 s


def run(command, patience_s=PATIENCE_S, timeout_s=None, **options):
    """As subprocess.run(check=False). The child has a process group of its own, so a terminal's Ctrl-C
    reaches this process alone, which passes on one signal and waits: mpirun takes a second one for
    an order to leave at once."""
    capture = options.pop("capture_output", False)
    if capture:
        options.update(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    options.setdefault("stdin", subprocess.DEVNULL)
    dies_with_us = ending_with(os.getpid())
    # Until the child is known it could not be stopped: signals wait.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)

    def prepare():
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        os.setpgid(0, 0)
        dies_with_us()
    try:
        child = subprocess.Popen([str(word) for word in command], preexec_fn=prepare, **options)
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        said = child.communicate(timeout=timeout_s)
    except BaseException:
        stop(child, patience_s)
        raise
    return subprocess.CompletedProcess(command, child.returncode, *said)


def stop(child, patience_s):
    """Ends a child and the programs of its group with SIGTERM and waits; what is left after that is
    killed. More signals change nothing."""
    with _signals_ignored():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGTERM)
        try:
            child.wait(patience_s)
        except subprocess.TimeoutExpired:
            pass
        _wait_for_group(child.pid, 1)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdout, child.stderr):
            if pipe:
                pipe.close()


def _wait_for_group(group, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(0.02)


@contextlib.contextmanager
def _signals_ignored():
    before = {}
    with contextlib.suppress(ValueError):  # not the main thread, which has the signals
        for number in SIGNALS:
            before[number] = signal.signal(number, signal.SIG_IGN)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def ending_with(parent):
    """For a child before it becomes another program: it is told to end when the process `parent`
    dies, however that dies."""
    def prepare():
        set_death_signal = 1  # PR_SET_PDEATHSIG
        ctypes.CDLL(None, use_errno=True).prctl(set_death_signal, signal.SIGTERM)
        if os.getppid() != parent:  # it died in between
            os._exit(128 + signal.SIGTERM)
    return prepare
