"""Files that are made anew each time: figures and their tables."""

import contextlib
import os
from pathlib import Path


@contextlib.contextmanager
def replacing(path, mode="x"):
    """A file to fill, which takes the place of `path` once it is whole. It is made exclusively,
    under a name of its own: a link that stands in its place is replaced, not followed."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": ""}
    try:
        with open(part, mode, **text) as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
