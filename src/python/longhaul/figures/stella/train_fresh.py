"""An iteration and its fresh parts on ranks beside their prediction (StellaTrain 3.3, 5.3).

(a) train-2dc over five rates, weights one iteration old or none, parts served by priority or as
they come. (b) The paper's ResNet152 and ViT-B-16: eight replicas with the times, sets and links of
stella-8gpu, which is why predictions of both are the same to the nanosecond. Nothing is trained."""

from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from longhaul import provenance
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.runs import train_records
from longhaul.figures.stella import bars, cluster, methods
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.records import is_finished
from longhaul.running import tools

WHY = "A goal of before it was measured: within 3%, and 3 points."
FIGURE = Figure(
    "train-fresh",
    summary="iterations and fresh parts by rate, staleness and order of service, on ranks and predicted",
    shows="time of an iteration and share of fresh parts, measured on ranks beside predicted, over the "
          "rate of the WAN, by staleness and order of service, and for the paper's models (3.3, 5.3)",
    options="[--measure] [--part PART]",
    repeat=Repeat("stella", seconds=15, simulate=("--simulate",), measure=("--measure",), minutes=13),
    expected=(
        Expected("period against predicted, 4 ranks (%, farthest)", "goal", low=-3, high=3,
                 column="period_off_percent", where="part=a", reduce="max_abs", kind="measured", why=WHY),
        Expected("fresh parts against predicted, 4 ranks (points, farthest)", "goal", low=-3, high=3,
                 column="fresh_off_points", where="part=a", reduce="max_abs", kind="measured", why=WHY)))
RATES = (0.3, 0.45, 0.576, 1, 2)  # Mbps; at 0.576 an exchange takes as long as the blocks
ORDERS = ("deadline", "arrival")
STALENESS = (0, 1)
FRESH_MODEL, PRIORITY_MODEL = "vit-b-16", "resnet152"  # of the claims
READINGS = {"stella": "hidden", "stella-eq6": "eq. 6"}
MODEL_RATES = (100, 500, 1000)
PARTS, REPLICAS = 12, 8  # of stella-8gpu


@dataclass(frozen=True)
class Point:
    """A run of bench_train, with each order of service and staleness of its own."""

    part: str
    mbps: float
    iterations: int
    staleness: tuple = STALENESS
    orders: tuple = ORDERS
    model: str = ""
    reading: str = ""  # of the share that is kept

    @property
    def scenario(self):
        return "train-8gpu" if self.model else "train-2dc"

    @property
    def name(self):
        """Of its directory."""
        words = [self.part, self.model, self.reading, f"{self.mbps:g}Mbps", *map(str, self.staleness),
                 f"{self.iterations}it"]
        return "-".join(filter(None, words))

    def variants(self):
        """{name of a method of bench_train: (staleness, order)}."""
        return {f"stella:staleness={staleness}:serve={order}": (staleness, order)
                for staleness in self.staleness for order in self.orders}


def points(part=None):
    """Stale weights are in step after a hundred iterations, others at once. Staleness hides the order
    of service where the exchange is hidden; where it is not, too, as simulated."""
    found = [Point("a", mbps, 40) for mbps in RATES]
    for mbps in MODEL_RATES:
        for reading in READINGS:
            found += [Point("b", mbps, 120, (1,), ORDERS[:1], FRESH_MODEL, reading),
                      Point("b", mbps, 24, (0,), ORDERS, PRIORITY_MODEL, reading)]
        found.append(Point("b", mbps, 120, (1,), ORDERS, PRIORITY_MODEL, "stella"))
    return [one for one in found if part in (None, one.part)]


def set_bytes(run):
    """Of one part on a link: two sites' ring hands REPLICAS - 1 of each over the WAN each way. As of
    stella-8gpu, whose parts a small model's gradients would only be near."""
    command = [*methods.command_of(run)]
    command[command.index("--iterations") + 1] = 1
    return round(methods.ask(command)["stream"]["wan_bytes"] / (PARTS * (REPLICAS - 1)))


def overrides(point):
    """What `--set` says of a point."""
    if not point.model:
        return [f"link.bandwidth={point.mbps:g}Mbps"]
    run = methods.Run(point.reading, point.model, point.mbps)
    return [*methods.overrides(run), f"train.message={set_bytes(run)}B", f"train.parts={PARTS}",
            f"train.stands_for={point.model}"]


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true",
                        help="predictions alone (the default without --measure and --results)")
    parser.add_argument("--measure", action="store_true",
                        help="run what is missing first; a run that is finished is not run again")
    parser.add_argument("--results", metavar="DIR",
                        help=f"what --measure wrote; with --measure, where it goes (default: runs/{FIGURE.name})")
    parser.add_argument("--part", choices=("a", "b"), help="one alone: the rates, or the paper's models")
    parser.add_argument("--iterations", type=int, metavar="N",
                        help="of each run (default: 24 to 120, by what it is of)")


def draw(options):
    asked = points(options.part)
    if options.iterations:
        asked = [replace(one, iterations=options.iterations) for one in asked]
    if options.simulate or not (options.measure or options.results):
        table = simulated(asked)
        return [Drawn(FIGURE.name, figure_of(table), table.round(6))]
    results = Path(options.results or f"runs/{FIGURE.name}")
    if options.measure:
        for point in asked:
            measure(point, results)
    table = measured(asked, results)
    return [Drawn(FIGURE.name, figure_of(table), table.round(6), verdicts(table))]


def command_of(point, staleness, order, words):
    command = [tools.binary("longhaul"), "simulate", tools.scenario_file(point.scenario), "--schedule",
               "stella", "--iterations", point.iterations, "--json"]
    command += tools.set_words((*words, f"train.staleness={staleness}", f"train.serve={order}"))
    return command


def simulated(asked):
    cells = [(point, words, *variant) for point in asked for words in [overrides(point)]
             for variant in point.variants().values()]
    answers = methods.ask_all([command_of(point, staleness, order, words)
                               for point, words, staleness, order in cells])
    return pd.DataFrame([row_of(point, staleness, order, "simulated", answer["stream"]["period_ns"],
                                answer["stream"]["fresh_share"])
                         for (point, _, staleness, order), answer in zip(cells, answers)])


def row_of(point, staleness, order, source, predicted_ns, predicted_share, period_ns=None, share=None):
    """Milliseconds and percent; of what is only predicted nothing is measured."""
    def percent(one):
        return float("nan") if one is None else 100 * one

    ms = float("nan") if period_ns is None else period_ns * 1e-6
    return {"part": point.part, "model": point.model or "train-2dc", "reading": READINGS.get(point.reading, ""),
            "mbps": point.mbps, "staleness": staleness, "serve": order, "source": source,
            "period_ms": ms, "predicted_period_ms": predicted_ns * 1e-6,
            "period_off_percent": 100 * (ms / (predicted_ns * 1e-6) - 1),
            "fresh_percent": percent(share), "predicted_fresh_percent": percent(predicted_share),
            "fresh_off_points": percent(share) - percent(predicted_share)}


def measure(point, results):
    if is_finished(results / point.name):
        return
    train_records.measure(results / point.name, results, point.scenario, [
        "--compute", "timed", "--methods", ",".join(point.variants()), "--max-iterations", point.iterations,
        "--data", "synthetic", *tools.set_words(overrides(point))], checkpoint_every=None)


def measured(asked, results):
    rows = []
    for point in asked:
        directory = results / point.name
        if not is_finished(directory):
            continue
        record = train_records.record_of(directory)
        for curve in record["train"]["curves"]:
            if curve["method"] not in point.variants():
                raise Failure(f"{directory}: a run of {curve['method']}. Give what --measure wrote.")
            row = row_of(point, *point.variants()[curve["method"]], "measured",
                         curve["predicted_period_ns"], curve["predicted_fresh_share"],
                         curve["period_ns"], curve["fresh_share"])
            rows.append(provenance.add(row | {"n": curve["exchanges"]},
                                       train_records.facts_of(record, directory, curve)))
    if not rows:
        raise Failure(f"no records of bench_train below {results}. Draw with --measure.")
    return pd.DataFrame(rows)


def slower(table, column="period_ms"):
    """A row for each reading, rate and staleness of PRIORITY_MODEL: percent by which iterations are
    slower as parts come than by priority."""
    own = table[table["model"] == PRIORITY_MODEL]
    if own.empty:
        return pd.DataFrame(columns=["reading", "mbps", "staleness", "percent"])
    wide = own.set_index(["reading", "mbps", "staleness", "serve"])[column].unstack("serve")
    return (100 * (1 - wide["deadline"] / wide["arrival"])).rename("percent").reset_index()


def verdicts(table):
    """Of the claims that the ablation judges as simulated."""
    said = []
    fresh = table[table["model"] == FRESH_MODEL]
    how = ("Measured on eight ranks that take the times of the GPUs for blocks, over emulated links; {0} "
           "as simulated. Whole iterations of the same plans as in stella-ablation.")
    if not fresh.empty:
        claim = "stella-fresh"
        found = fresh.groupby("reading", sort=False)["fresh_percent"].apply(list)
        foretold = claims.spread(list(fresh["predicted_fresh_percent"]), ".1f", "%")
        said.append(claims.judge(
            claim, claims.over_inputs(list(fresh["fresh_percent"]),
                                      lambda one: claims.within(one, claims.value(claim))),
            "; ".join(f"{claims.spread(values, '.1f', '%')} ({reading})" for reading, values in found.items()),
            how.format(foretold)))
    gains = slower(table)
    if not gains.empty:
        claim = "stella-priority"
        found = gains.groupby(["staleness", "reading"])["percent"].apply(list)
        foretold = claims.spread(list(slower(table, "predicted_period_ms")["percent"]), ".1f", "%")
        said.append(claims.judge(
            claim, claims.over_inputs([max(values) for values in found],
                                      lambda one: claims.at_least(one, claims.value(claim))),
            "; ".join(f"{claims.spread(values, '.1f', '%')} ({reading}, {staleness} stale)"
                      for (staleness, reading), values in found.items()),
            how.format(foretold)))
    return said


COLOURS = {(0, "deadline"): "#0b5394", (0, "arrival"): "#3fa7d6", (1, "deadline"): "#c2185b",
           (1, "arrival"): "#f0b400"}


def figure_of(table):
    plt = style.apply()
    parts = list(dict.fromkeys(table["part"]))
    is_measured = table["period_ms"].notna().any()
    figure, grid = plt.subplots(1, 2 * len(parts), figsize=(5.2 * len(parts) + 0.6, 4.4), squeeze=False)
    panels = list(grid[0])
    if "a" in parts:
        own = table[table["part"] == "a"]
        over_rates(panels.pop(0), own, "period_ms", "an iteration (ms)")
        over_rates(panels.pop(0), own, "fresh_percent", "fresh parts (%)")
    if "b" in parts:
        own = table[(table["model"] == FRESH_MODEL) & (table["reading"] == "hidden")]
        over_rates(panels.pop(0), own, "fresh_percent", "fresh parts of ViT-B (%)",
                   claims.value("stella-fresh"))
        draw_slower(panels.pop(0), table)
    bars.finish(figure, grid[0][0], "Iterations and their fresh parts",
                ("Points: measured on ranks that wait as long as blocks take. " if is_measured else "")
                + "Lines: predicted; dashes: the paper. s: iterations that weights are old.", columns=4)
    figure.subplots_adjust(wspace=0.36, left=0.08)
    return figure


def over_rates(axes, table, column, label, theirs=None):
    for (staleness, order), own in table.groupby(["staleness", "serve"]):
        colour = COLOURS[staleness, order]
        name = f"s = {staleness}, {'priority' if order == 'deadline' else 'as they come'}"
        axes.plot(own["mbps"], own[f"predicted_{column}"], color=colour, linewidth=1.2, label=name)
        axes.plot(own["mbps"], own[column], "o", color=colour, markersize=4)
    if theirs is not None:
        axes.axhline(theirs, color="#c4161c", linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    rates = sorted(table["mbps"].unique())
    axes.set_xticks(rates, [f"{mbps:g}" for mbps in rates], rotation=45 if len(rates) > 3 else 0)
    axes.minorticks_off()
    axes.set_ylim(bottom=0)
    axes.set_xlabel("Mbps")
    axes.set_title(label, loc="left", fontsize=9)
    bars.ground(axes, both=True)


def draw_slower(axes, table):
    foretold, found = slower(table, "predicted_period_ms"), slower(table)
    for (staleness, reading), own in foretold.groupby(["staleness", "reading"]):
        colour = COLOURS[staleness, "deadline" if reading == "hidden" else "arrival"]
        axes.plot(own["mbps"], own["percent"], color=colour, linewidth=1.2)
        axes.annotate(f"{reading}, s = {staleness}", (own["mbps"].iloc[0], own["percent"].iloc[0]),
                      xytext=(0, 3), textcoords="offset points", fontsize=7, color=colour)
        mine = found[(found["staleness"] == staleness) & (found["reading"] == reading)]
        axes.plot(mine["mbps"], mine["percent"], "o", color=colour, markersize=4)
    axes.axhline(claims.value("stella-priority"), color="#c4161c", linewidth=0.8, linestyle="--")
    axes.set_xscale("log")
    axes.set_xticks(MODEL_RATES, [str(mbps) for mbps in MODEL_RATES])
    axes.minorticks_off()
    axes.set_xlabel("Mbps")
    axes.set_title(f"{cluster.NAMES[PRIORITY_MODEL]} as parts come:\nslower by (%)", loc="left", fontsize=9)
    bars.ground(axes, both=True)
