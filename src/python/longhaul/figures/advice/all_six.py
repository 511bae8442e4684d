"""What `longhaul advise` says of scenarios, measured on ranks: each plan of the waterfall beside its
prediction, and the best one with prefill in what stays idle. Of three sites with given stages; of
the same sites with open layouts; and of replicas that may train by a method."""

import json
import statistics
import tomllib
from pathlib import Path

import pandas as pd

from longhaul import provenance, records, scenario_text
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.runs import train_records
from longhaul.running import measuring, tools

FIGURE = Figure(
    "all-six",
    summary="what advise says of three unequal sites, each plan measured on ranks beside it",
    shows="what `longhaul advise` says of three unequal sites, each plan measured on 16 ranks",
    options="[--measure]",
    repeat=Repeat("longhaul", measure=("--measure",), minutes=10))
GOAL_PERCENT = 3.0
LAYOUTS = "benchmarks/layouts/three-sites.toml"
TRAINED, CURVES = "train-2dc", "benchmarks/scenarios/train-2dc-curves.csv"
RATE = "5Mbps"  # of its WAN: an exchange of exact sums takes most of a second
STAGES, OPEN, METHODS = "given stages", "open layouts", "methods"
PREDICTED, MEASURED, PREFILL = "#c2185b", "#0b5394", "#e69f00"


def add_arguments(parser):
    measuring.add_once(parser, f"runs/{FIGURE.name}")
    parser.add_argument("--scenario", default="three-sites", metavar="FILE",
                        help="stages placed, with [prefill] (default: %(default)s)")
    parser.add_argument("--search-moves", type=int, default=2000, metavar="N",
                        help="of each search of advise (default: %(default)s)")
    parser.add_argument("--iterations", type=int, default=8, metavar="N",
                        help="of each plan (default: %(default)s)")
    parser.add_argument("--pairs", type=int, default=10, metavar="N",
                        help="of stretches with prefill and without (default: %(default)s)")


    parser.add_argument("--updates", type=int, default=120, metavar="N",
                        help="that each method trains (default: %(default)s)")
    parser.add_argument("--text", metavar="FILE", help="what to learn (default: Python's library)")


def draw(options):
    directory = measuring.directory_of(options)
    if options.measure:
        measure(options, directory)
    table = table_of(directory)
    tools.say(verdict(table))
    return [Drawn(FIGURE.name, figure_of(table), table)]


def measure(options, directory):
    scenario = tools.from_root(tools.scenario_file(options.scenario))
    directory.mkdir(parents=True, exist_ok=True)
    advice = directory / "advice"
    if not (advice / "advice.json").is_file():
        tools.run(["env", "-C", tools.ROOT, tools.binary("longhaul"), "advise", scenario,
                   "--search-moves", options.search_moves, "--out", tools.from_root(advice)])
    ranks = int(scenario_text.ranks_of(tools.ROOT / scenario, []))
    plans = plans_of(directory)
    for number, plan in enumerate(plans, 1):
        command = [tools.binary("bench_pipeline"), scenario, "--ranks-per-process", ranks,
                   "--schedule", schedule_file(advice, number), "--iterations", options.iterations,
                   "--trace", "off"]
        command += overlap_words(plan)
        measuring.run_once(command, directory / f"plan-{number}", directory)
    measure_layouts(options, directory)
    measure_methods(options, directory)
    number = best_without_overlap(plans)
    sites = tomllib.loads((tools.ROOT / scenario).read_text())["datacenter"]
    serving = len(sites) + 1  # ranks: a service in each datacenter, and the controller
    measuring.run_once([
        tools.binary("bench_prefill"), scenario, "--ranks-per-process", ranks + serving,
        "--schedule", schedule_file(advice, number), "--requests",
        "benchmarks/requests/prompts.csv", "--backlog", 64, "--pairs", options.pairs],
        directory / "prefill", directory)


def overlap_words(plan):
    """A search ends where that of advice did, with the same decisions."""
    words = ["--overlap", plan["overlap"]] if plan["overlap"] else []
    most = plan.get("overlap_search")  # older answers have none
    return words if most is None else [*words, "--overlap-search", most]


def ask(options, advice, scenario, *words):
    """`longhaul advise`, unless it was asked before."""
    if not (advice / "advice.json").is_file():
        tools.run(["env", "-C", tools.ROOT, tools.binary("longhaul"), "advise", scenario,
                   "--search-moves", options.search_moves, *words, "--out", tools.from_root(advice)])


def measure_layouts(options, directory):
    """Each plan is a scenario of its own, of what its ranks repeat."""
    advice = directory / "layouts"
    ask(options, advice, LAYOUTS)
    for number, plan in enumerate(plans_of(directory, "layouts"), 1):
        scenario = advice / f"plan-{number}.toml"
        command = [tools.binary("bench_pipeline"), scenario, "--ranks-per-process",
                   int(scenario_text.ranks_of(scenario, [])), "--schedule",
                   schedule_file(advice, number), "--iterations", options.iterations, "--trace", "off"]
        command += overlap_words(plan)
        measuring.run_once(command, directory / f"layouts-{number}", directory)


def measure_methods(options, directory):
    """Real layers train by each method of a plan, over links at RATE."""
    ask(options, directory / "methods", f"benchmarks/scenarios/{TRAINED}.toml", "--allow", "lossy",
        "--curves", CURVES, "--set", f"link.bandwidth={RATE}")
    methods = sorted({plan["loss"]["method"] for _, plan in plans_by_methods(directory)})
    train_records.measure(directory / "trained", directory, TRAINED, [
        "--methods", ",".join(methods), "--lr-grid", "0.003", "--seeds", 1, "--max-iterations",
        options.updates, "--points", 1, "--pace", "--set", f"link.bandwidth={RATE}",
        *train_records.data_of(options)])


def plans_by_methods(directory):
    """With their numbers. Sums of plans without one are of two bytes a number, which no method sends."""
    plans = [(number, plan) for number, plan in enumerate(plans_of(directory, "methods"), 1)
             if "method" in plan["ideas"]]
    if not plans:
        raise Failure(f"{directory}/methods: no plan trains by a method. Take a thinner link.")
    return plans


def schedule_file(advice, number):
    return tools.from_root(advice / f"plan-{number}.csv")


def plans_of(directory, advice="advice"):
    try:
        return json.loads((directory / advice / "advice.json").read_text())["plans"]
    except OSError as error:
        raise Failure(f"{directory}: there is no {advice}/advice.json ({error.strerror}). "
                      "Give what --measure wrote.") from None


def best_without_overlap(plans):
    """Its number: bubbles are filled below whole blocks, and without relays."""
    for number, plan in enumerate(plans, 1):
        if not plan["overlap"] and "turns" not in plan["ideas"]:
            return number
    raise Failure("every plan has overlaps or turns (prefill is placed beside neither).")


def table_of(directory):
    """A row for each plan, and one for the plan with prefill."""
    rows = rows_of_plans(directory, STAGES, "advice", "plan")
    rows += rows_of_plans(directory, OPEN, "layouts", "layouts")
    rows += rows_of_methods(directory)
    plans = plans_of(directory)
    record = records.read_finished(directory / "prefill")
    entry = record["schedules"][0]
    plan = plans[best_without_overlap(plans) - 1]
    iterations = record["stretch_iterations"]
    on = record["pairs"]["on_ns"]
    median = statistics.median(on) / iterations
    rows.append(provenance.add(
        {"part": STAGES, "plan": best_without_overlap(plans), "ideas": "+".join([*plan["ideas"], "prefill"]),
         "schedule": plan["made_by"], "overlap": "-", "advised_s": plan["iteration_ns"] / 1e9,
         "measured_s": median / 1e9,
         "difference_percent": 100 * (median / plan["iteration_ns"] - 1),
         "training_predicted": entry["predicted_utilisation"]["training"],
         "total_predicted": entry["predicted_utilisation"]["total"],
         "total_measured": entry["utilisation"]["total"], "check": record["check"], "n": len(on)},
        facts_of(record, directory / "prefill")))
    return pd.DataFrame(rows)


def rows_of_plans(directory, part, advice, runs):
    rows = []
    for number, plan in enumerate(plans_of(directory, advice), 1):
        run = directory / f"{runs}-{number}"
        record = records.read_record(run)
        entry = record["schedules"][0]
        rows.append(provenance.add(
            row_of_plan(part, number, plan, entry["measured_median_ns"])
            | {"check": entry["check"], "n": entry["n"]}, facts_of(record, run)))
    return rows


def rows_of_methods(directory):
    """A plan's update beside that of its method on ranks: an exchange over its local steps. Plans of
    one method differ in orders alone, which a stage does not have."""
    record = train_records.record_of(directory / "trained")
    curves = {curve["method"]: curve for curve in record["train"]["curves"]}
    rows = []
    for number, plan in plans_by_methods(directory):
        method = plan["loss"]["method"]
        curve = curves[method]
        if curve["period_ns"] is None:
            raise Failure(f"{directory / 'trained'}: {method} has exchanged once (no time lies between "
                          "two). Train more updates: --updates N.")
        rows.append(provenance.add(
            row_of_plan(METHODS, number, plan, curve["period_ns"] / records.local_steps(curve))
            | {"schedule": method, "check": curve["check"],
               "n": curve["points"][-1][0] if curve["points"] else curve["exchanges"]},
            train_records.facts_of(record, directory / "trained", curve)))
    return rows


def row_of_plan(part, number, plan, measured_ns):
    return {"part": part, "plan": number, "ideas": "+".join(plan["ideas"]) or "none",
            "schedule": plan["made_by"], "overlap": plan["overlap"] or "-",
            "advised_s": plan["iteration_ns"] / 1e9, "measured_s": measured_ns / 1e9,
            "difference_percent": 100 * (measured_ns / plan["iteration_ns"] - 1),
            "training_predicted": None, "total_predicted": None, "total_measured": None}


def facts_of(record, run):
    """Where a row comes from. bench_prefill sends hops of prompts and training's messages without
    payloads of their own, and makes up for 1 ms (its default credit)."""
    facts = provenance.of(record, run)
    facts["time_scale"] = record.get("time_scale", 1.0)
    if record.get("benchmark") == "bench_prefill":
        facts |= {"payload_sent_bytes": 0, "lateness_credit_ns": 1_000_000}
    return facts


def verdict(table):
    worst = table.loc[table["difference_percent"].abs().idxmax()]
    close = "within" if abs(worst["difference_percent"]) <= GOAL_PERCENT else "not within"
    plans = table[table["total_measured"].isna()].sort_values(["part", "advised_s"])
    is_ordered = plans.groupby("part")["measured_s"].apply(lambda part: part.is_monotonic_increasing)
    order = "in the predicted order" if is_ordered.all() else "in another order than predicted"
    filled = table[table["total_measured"].notna()].iloc[0]
    return (f"{FIGURE.name}: {close} {GOAL_PERCENT:g}% of the prediction (the farthest is "
            f"{worst['ideas']} of {worst['part']}, {worst['difference_percent']:+.2f}%), {order}. With prefill "
            f"{100 * filled['total_measured']:.1f}% of the GPUs' time is used, predicted "
            f"{100 * filled['total_predicted']:.1f}%. Checks: "
            f"{', '.join(sorted(set(table['check'])))}.")


def figure_of(table):
    """Bars of each part, over the slowest of its plans."""
    plt = style.apply()
    plans = table[table["total_measured"].isna()]
    filled = table[table["total_measured"].notna()].iloc[0]
    height = 2.2 + 0.36 * len(plans)
    figure, (axes, use) = plt.subplots(1, 2, figsize=(9.2, height), width_ratios=(3, 1))
    names, place = [], 0
    for part, rows in plans.groupby("part", sort=False):
        slowest = rows["measured_s"].max()
        axes.annotate(f"{part} (all over {slowest:.3g} s)", (0.005, place), va="center", fontsize=8, fontweight="bold")
        names.append("")
        place += 1
        for row in rows.itertuples():
            axes.barh(place, row.measured_s / slowest, 0.6, color=MEASURED, alpha=0.8,
                      label="measured (median)" if place == 1 else None)
            axes.plot(row.advised_s / slowest, place, "|", markersize=13, markeredgewidth=2,
                      color=PREDICTED, label="advised" if place == 1 else None)
            axes.annotate(f"{row.difference_percent:+.2f}%",
                          (max(row.measured_s, row.advised_s) / slowest, place), xytext=(7, 0),
                          textcoords="offset points", va="center", fontsize=8)
            names.append(f"{row.ideas.replace('+', ' + ')}: {style.plain(row.schedule)}")
            place += 1
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.4, -0.7)
    axes.set_xlim(0, 1.18)
    axes.set_xlabel("iteration or update, of the slowest of its part")
    figure.suptitle("What advise says of three sites, and what 16 ranks took (timed blocks, emulated "
                    "links;\nmethods: real layers of four ranks)", x=0.01, ha="left", fontsize=11,
                    fontweight="bold")
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(0, 1))
    for place, total in enumerate((filled["total_predicted"], filled["total_measured"])):
        use.bar(place, 100 * filled["training_predicted"], 0.6, color=MEASURED, alpha=0.8,
                label="training" if place == 0 else None)
        use.bar(place, 100 * (total - filled["training_predicted"]), 0.6,
                bottom=100 * filled["training_predicted"], color=PREFILL, hatch="///",
                edgecolor="white", label="prefill" if place == 0 else None)
        use.annotate(f"{100 * total:.1f}%", (place, 100 * total), xytext=(0, 2), ha="center",
                     textcoords="offset points", fontsize=8)
    use.set_xticks((0, 1), ("predicted", "measured"))
    use.set_ylim(0, 112)
    use.set_ylabel("GPUs' time in use (%)")
    use.legend(frameon=False, fontsize=8, ncols=2, loc="lower left", bbox_to_anchor=(-0.2, 1))
    for panel, along in ((axes, "x"), (use, "y")):
        panel.grid(axis=along, color="#dddddd", linewidth=0.6)
        panel.set_axisbelow(True)
    figure.tight_layout()
    return figure
