"""Errors outside of the program, worded for people: 'what (why). What to do.'"""

import difflib
import signal
import sys
import threading

from longhaul import progress

BAD_INPUT = 2
RUN_FAILED = 3
INTERRUPTED = 130  # as a shell says of SIGINT
TERMINATED = 143   # and of SIGTERM


def result_name(text):
    """A type of argparse for --out."""
    if text in ("", "-"):
        raise Failure(f'--out "{text}" names no file or directory (results are not written to standard '
                      "output). Name one.")
    return text


class Failure(Exception):
    """Ends a command with one line and an exit code (2 bad input, 3 the run failed)."""

    def __init__(self, text, code=BAD_INPUT):
        super().__init__(text)
        self.code = code


def suggestion(word, known):
    """'Did you mean "a"?', or 'Known: a, b.' where nothing is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    return f'Did you mean "{near[0]}"?' if near else f"Known: {', '.join(known)}."


class Terminated(KeyboardInterrupt):
    """SIGTERM or SIGHUP, as Ctrl-C is SIGINT: what was started is ended on the way out."""


def _terminate(*_):
    raise Terminated


def guarded(entry, name):
    """Runs a command's main: a Failure is its text on stderr and its exit code. Signals become
    exceptions."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
                signal.signal(number, _terminate)
    try:
        with progress.shown(name):
            return entry()
    except Failure as failure:
        print(f"{name}: {failure}", file=sys.stderr, flush=True)
        return failure.code
    except Terminated:
        print(f"{name}: told to end", file=sys.stderr, flush=True)
        return TERMINATED
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr, flush=True)
        return INTERRUPTED
