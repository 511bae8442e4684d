"""Holds the simulator against vTrain's own predictor, row by row: sums of operators are recovered from
the rows of one file, each row of another is lowered as an operator graph, with the transfers between
stages as operators of the compute lane, as vTrain has them, and simulated."""

import argparse
import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from longhaul import progress
from longhaul.errors import Failure, guarded
from longhaul.papers import vtrain_predictor
from longhaul.running import tools

LARGEST_NS = 1000


def operator(name, kind, forward, dgrad):
    return (f'[[operator]]\nname = "{name}"\nkind = "{kind}"\nforward = "{forward}ns"\n'
            f'dgrad = "{dgrad}ns"\nrecompute = "0ns"\n')


def thirds(total):
    """A forward and a backward of that sum, in whole ns."""
    return total // 3, total - total // 3


def scenario_of(row, recovered):
    """A scenario with the operators of each stage: as many on each, of which some take no time."""
    part = {name: recovered.value((name, *row.group))
            for name in ("layer", "embedding", "head", "layer update", "update")}
    layer = thirds(round(part["layer"]))
    embedding = round(part["embedding"])
    ends = {"embedding": thirds(embedding),
            "head": thirds(round(part["embedding"] + part["head"]) - embedding)}
    boundary = round(row.boundary_ns)
    text = f"[parallel]\nstages = {row.pipeline}\nmicrobatches = {row.microbatches}\n"
    text += 'gradient_sync = "none"\n'
    after = part["update"] + row.layers_of_stage * part["layer update"]
    if row.data > 1:
        size = row.gradient_mib
        after += recovered.value(vtrain_predictor.all_reduce_of(row)) * (
            size if size > vtrain_predictor.LARGEST_TABLE_MIB else 1)
    # The first stage's last backward is the iteration's, and its gradients and step are the largest.
    times = [f'"{max(0, round(after))}ns"'] + ['"0ns"'] * (row.pipeline - 1)
    text += f"[costs]\noptimizer = [{', '.join(times)}]\n"
    for stage in range(row.pipeline):
        first, last = stage == 0, stage + 1 == row.pipeline
        text += operator("send back", "collective", 0, 0 if first else boundary)
        text += operator("embedding", "elementwise", *(ends["embedding"] if first else (0, 0)))
        text += operator("layer", "matmul", *layer) * row.layers_of_stage
        text += operator("head", "matmul", *(ends["head"] if last else (0, 0)))
        text += operator("send on", "collective", 0 if last else boundary, 0)
    return text


def simulated_ns(row, recovered, directory):
    file = Path(directory) / f"row-{abs(hash(row))}.toml"
    file.write_text(scenario_of(row, recovered))
    record = json.loads(tools.run([tools.binary("longhaul"), "simulate", file, "--schedule", "1f1b",
                                   "--granularity", "operator", "--json"]))
    file.unlink()
    return record["schedules"][0]["iteration_ns"]


def compared(arguments):
    fitted = vtrain_predictor.read_rows(arguments.fit)
    rows = vtrain_predictor.read_rows(arguments.rows)
    if not fitted or not rows:
        raise Failure("there is no row to recover from, or none to compare. Name files with rows.")
    known = (vtrain_predictor.read_collectives(arguments.collectives) if arguments.collectives
             else None)
    recovered = vtrain_predictor.Recovered(fitted, known)
    told = [row for row in rows if recovered.tells(row)]
    differences = []
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(max_workers=2) as pool:
        for row, time in zip(told, pool.map(lambda row: simulated_ns(row, recovered, directory), told)):
            differences.append((abs(time - row.iteration_ns), row.name))
            progress.step(f"row {len(differences)} of {len(told)}")
    largest = max(differences, default=(None, None))
    left = [row for row in rows if not recovered.tells(row)]
    unseen = [row.name for row in left if recovered.unseen(row)]
    return {"numbers": "simulated",
            "rows": len(told),
            "largest_difference_ns": None if largest[0] is None else round(largest[0], 3),
            "largest_row": largest[1],
            "not_recovered": [row.name for row in left],
            "not_recovered_because": {
                "an operator or all-reduce that no fitted row has": unseen,
                "too few rows of its width, t and micro-batch to tell its sums apart":
                    [row.name for row in left if row.name not in unseen]},
            "fit": {"rows": len(fitted), "numbers": recovered.numbers,
                    "largest_residual_ns": round(recovered.residual_ns, 3)}}


def text_of(answer):
    lines = [f"{answer['fit']['numbers']} numbers give {answer['fit']['rows']} rows within "
             f"{answer['fit']['largest_residual_ns']:g} ns"]
    if answer["rows"]:
        lines.append(f"{answer['rows']} rows simulated: at most {answer['largest_difference_ns']:g} ns "
                     f"off (row {answer['largest_row']})")
    if answer["not_recovered"]:
        lines.append(f"{len(answer['not_recovered'])} rows do not follow from those that were fitted:")
        lines += [f"  {len(names)} ({why}): {', '.join(names)}"
                  for why, names in answer["not_recovered_because"].items() if names]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(prog="compare-vtrain", description=__doc__)
    parser.add_argument("--fit", required=True, help="rows of vTrain's predictor to recover from (.csv)")
    parser.add_argument("--rows", required=True, help="rows to lower, simulate and compare (.csv)")
    parser.add_argument("--collectives", metavar="TABLE",
                        help="all-reduces inside a node that need not be recovered (.csv: gpu, "
                             "operation, ranks, size_bytes, in_place_ns)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    answer = compared(parser.parse_args())
    print(json.dumps(answer, indent=2) if "--json" in sys.argv else text_of(answer))
    largest = answer["largest_difference_ns"]
    return 0 if largest is not None and largest <= LARGEST_NS else 1


if __name__ == "__main__":
    sys.exit(guarded(main, "compare-vtrain"))
