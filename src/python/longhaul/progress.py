"""On a terminal: what a command is at, and for how long, once it has taken more than 2 s. One line on
stderr, which goes before anything else is printed; elsewhere nothing."""

import contextlib
import sys
import threading
import time

AFTER_S = 2.0
EVERY_S = 0.5
WIDTH = 78  # of a line that no terminal wraps

_text = "working"
_shown = threading.Lock()  # held while the line or another is being written
_visible = False


def step(text):
    """What is done from now on: 'prediction 3 of 40'."""
    global _text
    _text = text


class _Clearing:
    """A stream that takes the line away before it writes its own."""

    def __init__(self, stream, terminal):
        self._stream, self._terminal = stream, terminal

    def write(self, text):
        with _shown:
            _clear(self._terminal)
            return self._stream.write(text)

    def __getattr__(self, name):
        return getattr(self._stream, name)


def _clear(terminal):
    global _visible
    if _visible:
        terminal.write("\r\033[K")
        terminal.flush()
        _visible = False


def _show(terminal, name, stop, began):
    global _visible
    while not stop.wait(EVERY_S):
        seconds = time.monotonic() - began
        if seconds < AFTER_S:
            continue
        with _shown:
            if not stop.is_set():
                terminal.write(f"\r{f'{name}: {_text}'[:WIDTH - 10]} ... {seconds:.0f} s\033[K")
                terminal.flush()
                _visible = True


@contextlib.contextmanager
def shown(name):
    """While the body runs, on a terminal."""
    terminal = sys.stderr
    if not terminal.isatty():
        yield
        return
    stop = threading.Event()
    ticker = threading.Thread(target=_show, args=(terminal, name, stop, time.monotonic()), daemon=True)
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (_Clearing(stream, terminal) for stream in streams)
    ticker.start()
    try:
        yield
    finally:
        stop.set()
        ticker.join()
        sys.stdout, sys.stderr = streams
        with _shown:
            _clear(terminal)
