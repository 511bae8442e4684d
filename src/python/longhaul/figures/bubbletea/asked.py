"""What figures of BubbleTea ask of `longhaul prefill`."""

import json

from longhaul.running import tools

SCENARIO = tools.SCENARIOS / "bubbletea.toml"
REQUESTS = tools.ROOT / "benchmarks" / "requests" / "prompts.csv"


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="simulated (the default)")
    parser.add_argument("--requests", default=str(REQUESTS), metavar="FILE",
                        help="Azure's trace (.csv); default: the synthetic one that is shipped")


def prefill(options, *more, schedule="atlas"):
    """The answer of one command."""
    return json.loads(tools.run([
        tools.binary("longhaul"), "prefill", SCENARIO, "--schedule", schedule, "--requests",
        options.requests, "--json", *more]))


def one(options, *more, schedule="atlas"):
    """Its only schedule."""
    return prefill(options, *more, schedule=schedule)["schedules"][0]
