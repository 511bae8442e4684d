"""The findings of scripts/bench-gpu: goals and verdicts as Markdown, from the records of its steps.

Uses nothing but the standard library: a borrowed machine may have no more.
"""

import csv
import json
import pathlib
import sys


def record_of(path):
    """Of a folder, or of a file whose name says so; None where there is none."""
    try:
        file = path if path.suffix == ".json" else path / "record.json"
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def row(goal, got, holds):
    return goal, got, {True: "holds", False: "MISSED", None: "not verified"}[holds]


def link_rows(out):
    record = record_of(out / "link")
    goal = "bench_link: median error at most 1% from 0.5 to 100 ms"
    if record is None:
        return [row(goal, "-", None)]
    worst = max(record["measurements"], key=lambda m: abs(m["error_median_percent"]))
    error = worst["error_median_percent"]
    where = f"{worst['test']} of {worst['target_ns'] / 1e6:g} ms"
    return [row(goal, f"farthest: {error:+.2f}% ({where})", abs(error) <= 1)]


def layer_rows(out):
    rows = []
    for model in ("m8", "m70"):
        record = record_of(out / f"layers-{model}")
        parts = {part["name"]: part for part in record["parts"] if part["group"] == "block"} \
            if record else {}
        for block, aim in (("F", 75), ("D", 70), ("W", 70)):
            part = parts.get(block)
            goal = f"{model}, {block} of a layer: {aim}% of the rate of a large product"
            if part is None:
                rows.append(row(goal, "-", None))
                continue
            rate = part["flops"] / part["median_s"]
            share = 100 * rate / record["product_flops_per_second"]
            rows.append(row(goal, f"{rate / 1e12:.0f} TFLOP/s, {share:.0f}%", share >= aim))
    return rows + [memory_row(out)]


def torch_rows(out):
    """A layer of ours beside the faster of PyTorch's two ways."""
    rows = []
    for model in ("m8", "m70"):
        ours, theirs = record_of(out / f"layers-{model}"), record_of(out / f"torch-{model}")
        goal = f"{model}, F and B of a layer: no longer than PyTorch's"
        if ours is None or theirs is None or not theirs["ways"]:
            rows.append(row(goal, "-", None))
            continue
        own = {part["name"]: part["median_s"] for part in ours["parts"] if part["group"] == "block"}
        way, best = min(theirs["ways"].items(), key=lambda item: item[1]["F_s"] + item[1]["B_s"])
        got = (f"F {1e3 * own['F']:.2f} ms against {1e3 * best['F_s']:.2f}, B {1e3 * own['B']:.2f} "
               f"against {1e3 * best['B_s']:.2f} ({way}, {theirs['torch']})")
        rows.append(row(goal, got, own["F"] + own["B"] <= best["F_s"] + best["B_s"]))
    return rows


def memory_row(out):
    """The kernels of our own that move memory and compute little."""
    goal = "kernels bound by memory: 80% of the copy bandwidth"
    shares = {}
    for model in ("m8", "m70"):
        record = record_of(out / f"layers-{model}")
        for part in record["parts"] if record else []:
            if part["group"] == "kernel" and part["bytes"]:
                shares[f"{part['name']} of {model}"] = \
                    part["bytes"] / part["median_s"] / record["copy_bytes_per_second"]
    if not shares:
        return row(goal, "-", None)
    least = min(shares, key=shares.get)
    reached = sum(share >= 0.8 for share in shares.values())
    return row(goal, f"{reached} of {len(shares)}; least: {least}, {100 * shares[least]:.0f}%",
               reached == len(shares))


def compress_rows(out):
    """StellaTrain's compression on the device, and copies beside a layer."""
    record = record_of(out / "compress.json") or {}
    kernels = {kernel["name"]: kernel for kernel in record.get("kernels", ())}
    rows = []
    for name in ("threshold of blocks of 16", "threshold of blocks of 16, residual apart"):
        goal = f"{name}: 80% of the copy bandwidth"
        if name in kernels:
            share = 100 * kernels[name]["share_of_copy"]
            got = f"{kernels[name]['bytes_per_second'] / 1e9:.0f} GB/s, {share:.0f}%"
            rows.append(row(goal, got, share >= 80))
        else:
            rows.append(row(goal, "-", None))
    faster = record.get("blocks_faster_percent", {})
    for where, what in (("in_gradient", "blocks"), ("apart", "blocks, residual apart")):
        goal = f"threshold of {what}: 16% faster than of single numbers (StellaTrain 5.3)"
        rows.append(row(goal, f"{faster[where]:+.1f}%", faster[where] >= 16) if where in faster
                    else row(goal, "-", None))
    goal = "copies through pinned memory are hidden: at most 3% more for F of a layer"
    copies = [one for one in record.get("beside", ())
              if one["name"] == "beside copies to and from pinned memory"]
    return rows + ([row(goal, f"{one['added_percent']:+.2f}%", one["added_percent"] <= 3)
                    for one in copies] or [row(goal, "-", None)])


def compress_beside_rows(out):
    """What goes on beside F of a layer, and what each gradient of it takes from the blocks."""
    record = record_of(out / "compress.json") or {}
    return [(one["name"], one["n"], f"{1e3 * one['median_s']:.3f}", f"{one['added_percent']:+.2f}",
             f"{one['gradients_per_second']:.1f}", f"{1e3 * one['block_s_per_gradient']:.3f}")
            for one in record.get("beside", ())]


def pipeline_rows(out):
    rows = []
    for folder in sorted(out.glob("timed-*")):
        record = record_of(folder) if folder.is_dir() else None
        if record is None:
            continue
        for found in record["schedules"]:
            name = f"{folder.name}, {found['schedule']}: within 3% of the model"
            difference = found["difference_percent"]
            rows.append(row(name, f"{difference:+.2f}%, check {found['check']}",
                            abs(difference) <= 3 and found["check"] == "ok"))
    return rows or [row("timed pipelines of 4 and 8 devices: within 3% of the model", "-", None)]


PROFILED = (("real-blocks", 3), ("real-operators", 8))  # runs and percent


def real_rows(out):
    rows = []
    unchecked = [name for name, _ in PROFILED]
    for folder in sorted(out.glob("real-*")):
        record = record_of(folder) if folder.is_dir() and folder.name not in unchecked else None
        for found in record["schedules"] if record else []:
            rows.append(row(f"{folder.name}, {found['schedule']}: loss and gradients are those of "
                            "one rank", f"check {found['check']}", found["check"] == "ok"))
    return rows or [row("real layers match one rank", "-", None)]


def profiled_rows(out):
    """Real runs against what a profile of the same card says of them."""
    rows = []
    for folder, aim in PROFILED:
        record = record_of(out / folder)
        for found in record["schedules"] if record else []:
            difference = found["difference_percent"]
            rows.append(row(f"{folder}, {found['schedule']}: within {aim}% of the profile's time",
                            f"{difference:+.2f}%", abs(difference) <= aim))
    return rows or [row("real layers take what a profile says", "-", None)]


def task_rows(out):
    """What CUPTI saw of each operator, against the operator's own time."""
    goal = "tasks add up to their operators within 3%"
    tasks = (record_of(out / "tasks") or {}).get("tasks")
    if tasks is None:
        return [row(goal, "-", None)]
    alone, whole = tasks["alone"], tasks["with_host"]
    got = (f"{whole['within_3_percent']} of {tasks['operators']} with {tasks['host_ns'] / 1e3:.1f} us "
           f"of the host's launch and wait, {alone['within_3_percent']} without; "
           f"farthest: {whole['farthest']}, {whole['farthest_percent']:+.1f}%")
    if tasks["dropped_records"]:
        got += f"; {tasks['dropped_records']} records dropped"
    return [row(goal, got, whole["within_3_percent"] == tasks["operators"])]


def prefill_rows(out):
    """A layer's F at lengths of prompts: how fast, and how far the slowest of a hundred is off."""
    rows = []
    lengths = {int(folder.name.split("-")[1]): folder for folder in out.glob("prefill-*")
               if folder.is_dir()}
    for tokens in sorted(lengths):
        record = record_of(lengths[tokens])
        for part in record["parts"] if record else []:
            if (part["group"], part["name"]) != ("block", "F"):
                continue
            seconds = sorted(part["samples_s"])
            late = seconds[-(len(seconds) // 100) - 1] / part["median_s"]
            rows.append((f"{tokens}", f"{1e6 * part['median_s']:.1f}",
                         f"{part['flops'] / part['median_s'] / 1e12:.1f}", f"{late:.3f}"))
    return rows


def served_prompt_rows(out):
    """Prompts of a served model's layers by `bench_profile --prefill`."""
    record = record_of(out / "served-prompts")
    return [(f"{point['tokens']}", f"{point['context']}", f"{point['samples']}",
             f"{point['p50_ns'] / 1e6:.2f}", f"{point['p99_over_p50']:.3f}")
            for point in (record["prefill"] if record else [])]


def served_rows(steps):
    """Served prompts against the CPU: the test that the step runs."""
    goal = "prefill in stages and passes equals the reference on the CPU"
    state = next((state for name, state, *_ in steps if name == "prefill-real"), None)
    if state is None or state.startswith("not run"):
        return [row(goal, "-", None)]
    return [row(goal, state, state == "ok")]


def times(value):
    return "-" if value is None else f"{value:.3f}"


def beside_rows(out):
    """A layer that trains beside other work of its GPU, against the same layer alone."""
    record = record_of(out / "beside")
    rows = []
    for case in record["beside"] if record else []:
        side = case["side"]
        if not side:
            continue
        claim = "-"
        if side["name"] == "prefill":
            claim = "no contention (Atlas 5.1)" if "in order" in case["name"] \
                else "contention, so it is avoided (Atlas 5.1)"
        slower = [times(case["parts"][part]["slowdown"]) for part in ("F", "B", "F+B")]
        rows.append((case["name"], *slower, times(side["slowdown"]), claim))
    return rows


def load_rows(out):
    """Weights of a layer of 10^9 parameters on their way from the host, beside the paper's time."""
    record = record_of(out / "load")
    rows = []
    for part in record["parts"] if record else []:
        claim = "at least 100 ms (Atlas 5)" if "pinned" in part["name"] else "-"
        seconds = sorted(part["samples_s"])
        late = seconds[-(len(seconds) // 100) - 1] / part["median_s"]
        rows.append((part["name"], f"{part['bytes'] / 1e9:g}", f"{1e3 * part['median_s']:.1f}",
                     f"{part['bytes'] / part['median_s'] / 1e9:.1f}", f"{late:.3f}", claim))
    return rows


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell).replace("|", "/") for cell in cells) + " |"
              for cells in rows]
    return "\n".join(lines)


def main(out):
    out = pathlib.Path(out)
    with open(out / "steps.tsv", encoding="utf-8", newline="") as file:
        steps = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    print("# Measured on a GPU\n")
    if (out / "device.csv").is_file():
        print("```\n" + (out / "device.csv").read_text(encoding="utf-8").strip() + "\n```\n")
    rows = link_rows(out) + layer_rows(out) + torch_rows(out) + compress_rows(out)
    rows += pipeline_rows(out) + real_rows(out) + profiled_rows(out)
    rows += task_rows(out) + served_rows(steps)
    print(table(("goal", "measured", "verdict"), rows) + "\n")
    if prefill := prefill_rows(out):
        print(table(("prompt's tokens", "F of a layer of M8, us", "TFLOP/s", "p99 over p50"),
                    prefill) + "\n")
    if prompts := served_prompt_rows(out):
        print(table(("prompt of llama3-8b's layers", "after tokens", "n", "p50, ms", "p99 over p50"),
                    prompts) + "\n")
    if beside := compress_beside_rows(out):
        print(table(("F of a layer", "n", "median, ms", "added, %", "gradients/s",
                     "block time for each, ms"), beside) + "\n")
    if beside := beside_rows(out):
        print(table(("a layer of M8 trains beside", "F slower", "B", "F+B", "the other", "paper"),
                    beside) + "\n")
        if section := record_of(out / "beside")["overlap_toml"]:
            print("```toml\n" + section + "```\n")
    if loads := load_rows(out):
        print(table(("from the host", "GB", "ms", "GB/s", "slowest over p50", "paper"), loads) + "\n")
    print(table(("step", "state", "s", "command"),
                [(name, state, seconds, f"`{command}`") for name, state, seconds, command in steps]))
    missing = [f"- {name}: {state}" for name, state, *_ in steps if state != "ok"]
    print("\nNot verified:" + ("\n\n" + "\n".join(missing) if missing else " nothing."))


if __name__ == "__main__":
    main(sys.argv[1])
