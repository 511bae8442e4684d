"""Errors outside of the program, worded for people: 'what (why). What to do.'"""

import difflib
import sys

BAD_INPUT = 2
RUN_FAILED = 3
INTERRUPTED = 130  # as a shell says of SIGINT


class Failure(Exception):
    """Ends a command with one line and an exit code (2 bad input, 3 the run failed)."""

    def __init__(self, text, code=BAD_INPUT):
        super().__init__(text)
        self.code = code


def suggestion(word, known):
    """'Did you mean "a"?', or 'Known: a, b.' where nothing is near."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.4)
    return f'Did you mean "{near[0]}"?' if near else f"Known: {', '.join(known)}."


def guarded(entry, name):
    """Runs a command's main: a Failure is its text on stderr and its exit code."""
    try:
        return entry()
    except Failure as failure:
        print(f"{name}: {failure}", file=sys.stderr, flush=True)
        return failure.code
    except KeyboardInterrupt:
        print(f"{name}: interrupted", file=sys.stderr, flush=True)
        return INTERRUPTED
