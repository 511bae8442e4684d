"""Times of compression and of optimizer steps on one core, by bench_compress, for figures 12 and 13 (a)."""

from pathlib import Path

import pandas as pd

from longhaul import provenance, records
from longhaul.errors import Failure
from longhaul.running import runs, tools

KEEPS = ("10%", "1%", "0.1%")
REPETITIONS = 9


def arguments(parser, name):
    parser.add_argument("--measure", action="store_true",
                        help="run bench_compress where its record is missing (some minutes)")
    parser.add_argument("--results", metavar="DIR",
                        help=f"what --measure wrote; with --measure, where it goes (default: runs/{name})")


def measure(results, keeps=KEEPS):
    for keep in keeps:
        out = results / f"kernels-{keep.removesuffix('%')}"
        if records.is_finished(out):
            continue
        out.mkdir(parents=True, exist_ok=True)
        tools.say(f"measuring {out}")
        runs.run([tools.binary("bench_compress"), "--keep", keep, "--repetitions", REPETITIONS, "--out",
                  out / records.RECORD], out, results, timeout_s=3600, goes_on=True)


def table_of(results):
    """A row for each kernel and share that is kept: milliseconds."""
    rows = []
    for keep in KEEPS:
        directory = Path(results) / f"kernels-{keep.removesuffix('%')}"
        if not records.is_finished(directory):
            continue
        record = records.read_record(directory)
        if record.get("benchmark") != "bench_compress":
            raise Failure(f"{directory}: a record of {record.get('benchmark')} (bench_compress times "
                          "kernels). Give what --measure wrote.")
        # No message is sent, no time is credited or scaled.
        facts = provenance.of(record, directory) | {
            "payload_sent_bytes": 0, "payload_nominal_bytes": 0, "lateness_credit_ns": 0,
            "time_scale": 1, "measurement": 1, "measurements": 1}
        rows += [provenance.add({"keep_percent": float(keep.removesuffix("%")), "kernel": each["name"],
                                 "measured_ms": 1e3 * each["median_s"], "least_ms": 1e3 * each["min_s"],
                                 "over_read": each["over_read"], "over_memcpy": each["over_memcpy"],
                                 "n": len(each["seconds"])}, facts)
                 for each in record["kernels"]]
    if not rows:
        raise Failure(f"no records of bench_compress below {results}. Draw with --measure.")
    return pd.DataFrame(rows)


def at(table, kernel, keep=1.0):
    """Median milliseconds of a kernel at a share in percent."""
    found = table[(table["kernel"] == kernel) & (table["keep_percent"] == keep)]
    if found.empty:
        raise Failure(f"the record has no {kernel} at {keep:g}%. Measure again, elsewhere.")
    return float(found["measured_ms"].iloc[0])
