"""Runs of bench_train behind the figures of training, and what is read from their records."""

import pandas as pd

from longhaul import provenance, records, scenario_text
from longhaul.errors import RUN_FAILED, Failure
from longhaul.running import runs, tools

PROGRESS = "progress.json"  # of bench_train, until it writes its record
CHECKPOINT_EVERY = 50       # iterations: stale weights wait for their links at each


def arguments(parser, name, grid="0.003,0.01", grid_said="%(default)s"):
    parser.add_argument("--measure", action="store_true",
                        help="run what is missing first; a run that is finished is not run again")
    parser.add_argument("--results", metavar="DIR",
                        help=f"what --measure wrote; with --measure, where it goes (default: runs/{name})")
    parser.add_argument("--text", metavar="FILE", help="what to learn (default: Python's library)")
    parser.add_argument("--seeds", default="1,2,3", metavar="N,N..", help="default: %(default)s")
    parser.add_argument("--lr-grid", default=grid, metavar="X,X..",
                        help=f"learning rates that each method tries (default: {grid_said})")


def measure(out, results, scenario, words, checkpoint_every=CHECKPOINT_EVERY):
    """bench_train on as many ranks as the scenario has, unless `out` holds a finished run. One that
    was cut short goes on with its curves, from the last checkpoint of the one under way. None: no
    checkpoints, for times of streams, which would wait at them."""
    if records.is_finished(out):
        return
    scenario = tools.scenario_file(scenario)
    goes_on = (out / PROGRESS).is_file()
    tools.say(f"{'going on with' if goes_on else 'measuring'} {out}")
    kept = [] if checkpoint_every is None else ["--checkpoint-every", checkpoint_every]
    kept += ["--resume"] if goes_on else []
    runs.run([tools.ROOT / "scripts" / "mpi", "-n", scenario_text.ranks_of(scenario, []),
              tools.binary("bench_train"), tools.from_root(scenario), *words, *kept, "--out", out],
             out, results, timeout_s=7200, goes_on=goes_on)


def data_of(options):
    return [f"--data=text:{options.text}"] if options.text else []


def record_of(directory):
    record = records.read_record(directory)
    if record.get("benchmark") != "bench_train":
        raise Failure(f"{directory}: a record of {record.get('benchmark')} (bench_train trains). Give "
                      "what --measure wrote.")
    wrong = [curve["method"] for curve in record["train"]["curves"] if curve["check"] != "ok"]
    if wrong:
        raise Failure(f"{directory}: messages or numbers of {', '.join(wrong)} came wrong. Look into "
                      "its record.", RUN_FAILED)
    return record


def facts_of(record, directory, curve):
    """Provenance of a curve: payloads are those that crossed the WAN in an exchange."""
    exchanges = max(1, curve["exchanges"])
    wan = curve["wan"]
    return provenance.of(record, directory) | {
        "payload_sent_bytes": wan["payload_bytes"] // exchanges,
        "payload_nominal_bytes": wan["nominal_bytes"] // exchanges,
        "time_scale": 1, "measurement": 1, "measurements": 1}


def curve_table(record, directory):
    """A row for each curve: seconds."""
    rows = []
    for curve in record["train"]["curves"]:
        points = curve["points"]
        rows.append(provenance.add({
            "method": curve["method"], "seed": curve["seed"],
            "learning_rate": curve["learning_rate"], "source": curve["kind"],
            "updates": curve["iterations_to_target"], "local_steps": records.local_steps(curve),
            "seconds_to_target": seconds(curve["time_to_target_ns"]),
            "period_s": seconds(curve["period_ns"]),
            "predicted_period_s": seconds(curve["predicted_period_ns"]),
            "validation": points[-1][3] if points else None,
            "search_s": seconds(curve["search_cost_ns"]),
            "faithful": curve["pace"]["faithful"], "stale": curve["settings"]["staleness"] > 0,
            "n": points[-1][0] if points else curve["exchanges"]},
            facts_of(record, directory, curve)))
    return pd.DataFrame(rows)


def seconds(nanoseconds):
    return None if nanoseconds is None else nanoseconds / 1e9
