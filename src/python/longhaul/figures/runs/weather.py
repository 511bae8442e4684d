"""Links with weather (docs/scenario.md), and three choices in it: a schedule made for the links as
profiled, one made for slower links (CrossPipe 8.2), and one that is made anew from measurements of
the ranks (6.2)."""

import math
import re
import shlex
import tomllib
from pathlib import Path

import pandas as pd
from matplotlib.lines import Line2D

from longhaul import provenance, records, scenario_text
from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.figures.runs import link_weather
from longhaul.running import runs, tools

FIGURE = Figure(
    "weather",
    summary="links with weather: a static, a conservative and an adaptive schedule over time",
    shows="links with weather: a static, a conservative and an adaptive schedule over time",
    options="[--measure]",
    repeat=Repeat("longhaul", measure=("--measure",), minutes=4))
FIXED, ADAPTIVE = "fixed", "adaptive"
CONSERVATIVE_FILE = "conservative.csv"
CHOICES = ("static", "conservative", "adaptive")
COLOURS = {"static": "#c2185b", "conservative": "#0b5394", "adaptive": "black"}
MARKERS = {"static": ("o", 6.5), "conservative": ("s", 4.5), "adaptive": ("D", 3.2)}


def add_arguments(parser):
    parser.add_argument("--results", metavar="DIR",
                        help=f"records of the two runs in DIR/{FIXED} and DIR/{ADAPTIVE}; with "
                             "--measure, where they go (default: runs/weather)")
    parser.add_argument("--measure", "--run", action="store_true",
                        help="run both; one that is finished is not run again")
    parser.add_argument("--dry-run", action="store_true",
                        help="print what --measure would run, and run nothing")
    parser.add_argument("--scenario", default="weather-2dc", metavar="FILE",
                        help="default: benchmarks/scenarios/weather-2dc.toml")
    parser.add_argument("--schedule", default="best", metavar="S",
                        help="what is made for the links as profiled, and what the adaptive run "
                             "selects from (default: best)")
    parser.add_argument("--conservative", type=float, default=4, metavar="X",
                        help="the conservative schedule is made for X times the latency and the "
                             "transfer time (default: %(default)g)")
    parser.add_argument("--iterations", type=int, default=45, metavar="N",
                        help="measured iterations of each schedule (default: %(default)s)")
    parser.add_argument("--time-scale", type=float, default=0.25, metavar="X",
                        help="every duration is multiplied by X while it is played "
                             "(default: %(default)g)")
    parser.add_argument("--set", action="append", default=[], metavar="PATH=VALUE",
                        help="override of the scenario; may be given again")
    parser.add_argument("--extra", default="--search-moves 200000", metavar="'OPTIONS'",
                        help="further options for schedules that are searched, as one word "
                             "(default: the same search everywhere: %(default)s)")


def draw(options):
    directory = Path(options.results or "runs/weather")
    if options.dry_run:
        for _, command in commands(directory, options):
            tools.say(shlex.join(command))
        return []
    if options.measure:
        make_directory(directory)
        for made, command in commands(directory, options):
            if not made():
                target = Path(command[command.index("--out") + 1])
                runs.run(command, tools.ROOT / target, directory)
    elif not options.results:
        raise Failure("nothing to draw (neither --results DIR nor --measure). "
                      "Give the directory of the two runs, or --measure.")
    fixed, adaptive = (records.read_record(directory / name) for name in (FIXED, ADAPTIVE))
    table = pd.concat([iterations_of(fixed, CHOICES[:2], directory / FIXED),
                       iterations_of(adaptive, CHOICES[2:], directory / ADAPTIVE)],
                      ignore_index=True)
    return [Drawn(FIGURE.name, draw_weather(table, fixed, adaptive), table)]


def make_directory(directory):
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot make {directory} ({error.strerror}). Choose another "
                      "--results.") from error


def commands(directory, options):
    """(is it done, command) in order, as a person would type them in the root of the checkout."""
    scenario = tools.scenario_file(options.scenario)
    conservative = directory / CONSERVATIVE_FILE
    overrides = [*options.set, f"run.time_scale={options.time_scale:g}"]
    extra = shlex.split(options.extra)
    make = [tools.from_root(tools.binary("longhaul")), "schedule", tools.from_root(scenario),
            "--schedule", options.schedule, *extra, *tools.set_words(options.set),
            *tools.set_words(slower(scenario, options.conservative)), "--out", tools.from_root(conservative)]
    yield conservative.is_file, [str(word) for word in make]
    for name in (FIXED, ADAPTIVE):
        schedules = options.schedule
        if name == FIXED:
            schedules += f",{tools.from_root(conservative)}"
        run = ["scripts/mpi", "-n", scenario_text.ranks_of(scenario, overrides),
               tools.from_root(tools.binary("bench_pipeline")), tools.from_root(scenario),
               "--schedule", schedules, "--iterations", options.iterations, *tools.set_words(overrides),
               *(["--adaptive"] if name == ADAPTIVE else []), *extra,
               "--out", tools.from_root(directory / name)]
        yield lambda name=name: records.is_finished(directory / name), [str(word) for word in run]


def slower(scenario, factor):
    """Overrides that multiply the delays that schedules are made for: latency, time of a
    transfer."""
    if not 0 < factor < math.inf:
        raise Failure(f"--conservative {factor:g} is no slowdown (it is not positive and finite). "
                      "Choose 4.")
    try:
        found = list(slower_links(tomllib.loads(Path(scenario).read_text()), factor))
    except (ValueError, TypeError, AttributeError) as error:  # of whatever stands there instead
        raise Failure(f"{scenario}: is no scenario ({error}). Correct it: `longhaul check` says "
                      "where.") from error
    if not found:
        raise Failure(f"{scenario}: no link gives a latency or a rate to make a conservative "
                      "schedule for. Give its links latency and bandwidth.")
    return found


def slower_links(scenario, factor):
    for link in scenario.get("link", []):
        ends = link.get("between", [link.get("from"), link.get("to")])
        path = "link.all" if ends == "all" else f"link.{'-'.join(map(str, ends))}"
        for key, by in (("latency", factor), ("rtt", factor), ("latency_ratio", factor),
                        ("transfer_ratio", factor), ("bandwidth", 1 / factor)):
            if key in link:
                yield f"{path}.{key}={times(link[key], by)}"


def times(value, factor):
    """Of a number, or of one with a unit: "40ms"."""
    match = re.fullmatch(r"\s*([0-9.eE+-]+)\s*([A-Za-z/]*)\s*", str(value))
    if not match:
        raise Failure(f'no number in "{value}". Write 40ms or 5Gbps.')
    return f"{float(match[1]) * factor:.9g}{match[2]}"


def iterations_of(record, choices, directory):
    """One row an iteration of the run in a directory; times in seconds of the scenario, not as
    played. Another choice begins with each schedule of the input; the stretches of one follow each
    other."""
    facts = provenance.of(record, directory) | {"time_scale": record.get("time_scale", 1.0)}
    scale = record.get("time_scale", 1.0) * 1e9
    rows, choice = [], -1
    for stretch in record.get("schedules", []):
        weather = stretch.get("weather")
        if weather is None:
            raise Failure("the record knows nothing of weather (its scenario had none, or it is "
                          "none of bench_pipeline). Give what --measure wrote.")
        choice += stretch["first_iteration"] == 0
        if choice not in range(len(choices)):
            raise Failure(f"the record is none of {' and '.join(choices)} (a run of other "
                          "schedules). Give the directory that --measure wrote.")
        rows += [provenance.add(
            {"choice": choices[choice], "schedule": stretch["schedule"],
             "iteration": stretch["first_iteration"] + index, "begin_s": begin / scale,
             "measured_s": sample / scale, "predicted_s": predicted / scale,
             "calm_s": stretch["predicted_ns"] / scale}, facts)
                 for index, (begin, sample, predicted) in enumerate(zip(
                     weather["begin_ns"], stretch["samples_ns"], weather["predicted_ns"],
                     strict=True))]
    table = pd.DataFrame(rows)
    return table.assign(n=table.groupby("choice")["iteration"].transform("size"))


def draw_weather(table, fixed, adaptive):
    plt = style.apply()
    figure, (latency, rate, times_of) = plt.subplots(
        3, 1, figsize=(8, 5.6), sharex=True, height_ratios=(1, 1, 2.6))
    scale = adaptive.get("time_scale", 1.0) * 1e9
    end = (table["begin_s"] + table["measured_s"]).max()
    links = link_weather.distinct(fixed["weather_of_links"])
    link_weather.draw(latency, rate, links, record_scale=scale, end=end)
    for axes in (latency, rate, times_of):
        link_weather.draw_outages(axes, links, scale, end)
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    for choice in CHOICES:
        draw_choice(times_of, table[table["choice"] == choice], choice)
    draw_events(times_of, table, adaptive)
    latency.set_ylabel("latency\n(ms)")
    rate.set_ylabel("bandwidth\n(Gbps)")
    times_of.set_ylabel("iteration time (s)")
    played = "" if scale == 1e9 else f"; played at time_scale {scale / 1e9:g}, scaled back"
    times_of.set_xlabel(f"time since the weather began (s{played})")
    for axes in (latency, rate, times_of):
        axes.set_ylim(bottom=0, top=axes.get_ylim()[1] * 1.08)
    times_of.set_xlim(0, end * 1.01)
    finish(figure, latency, table, fixed, links)
    return figure


def draw_choice(axes, rows, choice):
    """Each iteration is a line as long as it took; its prediction lies across."""
    rows = rows.sort_values("begin_s")
    ends = rows["begin_s"] + rows["measured_s"]
    axes.hlines(rows["predicted_s"], rows["begin_s"], ends, color=COLOURS[choice], linewidth=1.1)
    axes.plot((rows["begin_s"] + ends) / 2, rows["measured_s"], linestyle="",
              marker=MARKERS[choice][0], markersize=MARKERS[choice][1], color=COLOURS[choice],
              markeredgecolor="white", markeredgewidth=0.4)


def draw_events(axes, table, adaptive):
    """When the adaptive run took another schedule."""
    rows = table[table["choice"] == "adaptive"].set_index("iteration")
    for event in adaptive.get("switches", []):
        if event["event"] != "switch" or event["iteration"] not in rows.index:
            continue
        axes.axvline(rows.loc[event["iteration"], "begin_s"], color="black", linewidth=0.8,
                     linestyle=(0, (4, 3)), ymax=0.97, zorder=1)


def finish(figure, top, table, record, links):
    between = f": {', '.join(links[0]['names'])}" if len(links) == 1 else ""
    top.set_title(f"Links with weather ({records.scenario_of(record)}{between})", loc="left",
                  fontweight="bold")
    names = {"static": "made for the links as profiled",
             "conservative": "made for slower links", "adaptive": "made anew as links change"}
    count = table.groupby("choice")["iteration"].count().min()
    handles = []
    for choice in CHOICES:
        rows = table[table["choice"] == choice]
        total = (rows["begin_s"] + rows["measured_s"]).max()
        marker, size = MARKERS[choice]
        handles.append(Line2D([], [], color=COLOURS[choice], marker=marker, markersize=size, lw=1.1,
                              label=f"{choice}: {names[choice]}; {count} iterations in "
                                    f"{total:.0f} s"))
    handles.append(Line2D([], [], color="black", lw=0.8, linestyle=(0, (4, 3)),
                          label="adaptive: another schedule from here on"))
    handles.append(Line2D([], [], color="#555555", lw=1.1,
                          label="line: predicted in the weather it met; mark: measured"))
    handles += link_weather.handles(links)
    figure.legend(handles=handles, loc="lower center", frameon=False, ncols=2)
    figure.align_ylabels()
    figure.subplots_adjust(left=0.09, right=0.985, top=0.94, bottom=0.21, hspace=0.14)
