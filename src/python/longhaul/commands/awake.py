"""scripts/awake COMMAND: runs a command while no processor of this machine halts."""

import argparse
import sys

from longhaul.errors import Failure, guarded
from longhaul.running import awake, children


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/awake", description=awake.__doc__,
                                     epilog="Ends with the command's exit code.")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="COMMAND",
                        help="a program and its arguments")
    words = parser.parse_args(arguments).command
    if words[:1] == ["--"]:
        del words[0]
    if not words:
        raise Failure("no command (nothing to run). Name a program and its arguments.")
    with awake.held():
        try:
            code = children.run(words, stdin=None).returncode
        except OSError as error:
            raise Failure(f"{words[0]}: cannot be run ({error.strerror}).") from error
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(guarded(main, "awake"))
