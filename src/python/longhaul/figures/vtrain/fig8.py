"""vTrain figure 8: the operator graph of an iteration under (4, 2, 3)-way parallelism, drawn from
`longhaul ops --graph` with the operators between two all-reduces as one node."""

import json
import re
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from longhaul.drawing import style
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.errors import Failure
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

COUNTS = (("F MHA", 6), ("F FFN", 6), ("B MHA", 6), ("B FFN", 6), ("tp all_reduce", 24),
          ("send", 8), ("dp all_reduce", 3), ("optimizer", 3))
FIGURE = Figure(
    "vtrain-fig8",
    summary="the operator graph of an iteration under (4, 2, 3)-way parallelism (figure 8)",
    shows="the operator graph of (t, d, p) = (4, 2, 3), one GPU of each stage",
    repeat=Repeat("vtrain", seconds=5, simulate=("--simulate",)),
    expected=tuple(
        Expected(f"nodes {kind}", "exact", low=count, high=count, column="level",
                 where=f"kind={kind}", reduce="count",
                 why="Three layers, two microbatches, two all-reduces a layer and pass, two "
                     "borders, one gradient all-reduce and step a stage.")
        for kind, count in COUNTS))
SCENARIO = "vtrain-fig8"
GROWTH = ((5, 2), (65, 2), (65, 64))   # layers, microbatches
MARKS = {"attention": "MHA", "down": "FFN", "loss": "head", "head": "head", "embedding": "emb."}
HEAD = ("head_norm", "head", "loss")
NODE = re.compile(r'^\s+(\w+) \[label="([^"]*)"')
EDGE = re.compile(r"^\s+(\w+) -> (\w+);")
OPERATOR = re.compile(r"([FRBDW]) (\w+)(?:, layer \d+)?\\nmicrobatch (\d+)")
COLOURS = {"F": style.rgb(style.FORWARD), "B": style.rgb(style.INPUT_GRADIENT),
           "tp all_reduce": "#ffe08a", "send": "#f0a35c", "dp all_reduce": "#bdbdbd",
           "optimizer": style.rgb(style.WEIGHT_GRADIENT)}
LEGEND = {"F": "forward", "B": "backward (D and W)", "tp all_reduce": "all-reduce of tensor ranks",
          "send": "send and receive between stages",
          "dp all_reduce": "all-reduce of the gradients of 2 replicas", "optimizer": "update"}


@dataclass
class Node:
    """Operators of one block between two all-reduces, or a collective, a message, an update."""

    name: str
    stage: int          # -1: between stages
    kind: str
    label: str
    operators: list = field(default_factory=list)
    level: int = 0      # of the longest path to it
    before: set = field(default_factory=set)


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true", help="always so")


def draw(options):
    del options
    scenario = tools.scenario_file(SCENARIO)
    with tempfile.TemporaryDirectory(prefix="longhaul-") as directory:
        file = Path(directory) / "graph.dot"
        tools.run([tools.binary("longhaul"), "ops", scenario, "--schedule", "1f1b", "--graph",
                   file, "--json"])
        dot = file.read_text(encoding="utf-8")
    nodes = merged(dot)
    table = pd.DataFrame([{"node": node.name, "stage": node.stage, "kind": node.kind,
                           "operators": " ".join(node.operators), "level": node.level,
                           "after": " ".join(sorted(node.before))} for node in nodes.values()])
    return [Drawn(FIGURE.name, figure_of(nodes), table, verdicts(scenario))]


def parsed(dot):
    """{name: label} in the order of the file, and the edges."""
    labels, edges = {}, []
    for line in dot.splitlines():
        if found := EDGE.match(line):
            edges.append(found.groups())
        elif found := NODE.match(line):
            labels[found[1]] = found[2]
    return labels, edges


def merged(dot):
    """{name: Node}, levels set."""
    labels, edges = parsed(dot)
    nodes, home = {}, {}
    sums = {name: set() for name in labels}   # of tensor ranks, that an operator waits for
    for start, end in edges:
        if labels[start].startswith("tp "):
            sums[end].add(start)
    last = None
    for name, label in labels.items():
        operator = OPERATOR.match(label)
        if not operator:
            kind = label.split("\\n")[0].split(",")[0]
            kind = "send" if kind.startswith("send") else kind
            stage = int(re.match(r"s(\d+)", name)[1]) if name.startswith("s") else -1
            nodes[name] = Node(name, stage, kind, label)
            home[name] = name
            continue
        work, own, microbatch = operator.groups()
        stage = int(re.match(r"s(\d+)", name)[1])
        part = ("F" if work == "F" else "B", stage, microbatch, zone(own))
        if last is None or last[0] != part or sums[name] - sums[last[1]]:
            last = (part, name)
            nodes[name] = Node(name, stage, part[0], microbatch)
        nodes[last[1]].operators.append(f"{work}.{own}")
        home[name] = last[1]
    for start, end in edges:
        if home[start] != home[end]:
            nodes[home[end]].before.add(home[start])
    for node in nodes.values():
        name_operators(node)
    set_levels(nodes)
    return nodes


def zone(operator):
    """Head and embedding stand for themselves."""
    return "head" if operator in HEAD else "emb." if operator == "embedding" else "layer"


def name_operators(node):
    if not node.operators:
        return
    owns = [text.split(".")[1] for text in node.operators]
    what = next((mark for own, mark in MARKS.items() if own in owns), "norm")
    node.label = f"{what}\n{int(node.label) + 1}"
    node.kind = f"{node.kind} {what}"


def set_levels(nodes):
    """By the longest path; Failure where the graph has a cycle."""
    open_edges = {name: len(node.before) for name, node in nodes.items()}
    after = {name: [] for name in nodes}
    for name, node in nodes.items():
        for before in node.before:
            after[before].append(name)
    ready = [name for name, count in open_edges.items() if not count]
    seen = 0
    while ready:
        name = ready.pop()
        seen += 1
        for other in after[name]:
            nodes[other].level = max(nodes[other].level, nodes[name].level + 1)
            open_edges[other] -= 1
            if not open_edges[other]:
                ready.append(other)
    if seen != len(nodes):
        raise Failure(f"the graph of {SCENARIO} has a cycle ({len(nodes) - seen} of {len(nodes)} "
                      "nodes wait for each other). Report it.")


def reduced(nodes):
    """[(before, after)] without those that others imply."""
    ancestors = {}
    for name in sorted(nodes, key=lambda name: nodes[name].level):
        before = nodes[name].before
        ancestors[name] = before.union(*(ancestors[one] for one in before))
    return [(before, name) for name, node in nodes.items() for before in node.before
            if not any(before in ancestors[other] for other in node.before)]


def needed(scenario, layers, microbatches):
    sets = {"model.layers": layers, "model.layers_per_stage": "even",
            "parallel.microbatches": microbatches}
    words = [tools.binary("longhaul"), "profile", "needed", scenario, "--json"]
    for path, value in sets.items():
        words += ["--set", f"{path}={value}"]
    return len(json.loads(tools.run(words))["operators"])


def verdicts(scenario):
    found = [needed(scenario, *size) for size in GROWTH]
    return [claims.judge(
        "vtrain-necessary", claims.HOLDS if len(set(found)) == 1 else claims.FAILS,
        ", ".join(map(str, found)) + " operators",
        "Of " + ", ".join(f"{layers} layers and {count} microbatches" for layers, count in GROWTH)
        + ".")]


def place_of(node, nodes):
    """(x, y): levels from left to right, stages from above; what is sent stands between two rows,
    all-reduces a little below their stage, which goes on beside them where it can."""
    if node.stage < 0:
        ends = [nodes[name].stage for name in node.before if nodes[name].stage >= 0]
        takers = [other.stage for other in nodes.values() if node.name in other.before]
        return node.level, -(ends[0] + takers[0]) / 2
    return node.level, -node.stage - (0.22 if node.kind.endswith("all_reduce") else 0)


def figure_of(nodes):
    plt = style.apply()
    levels = max(node.level for node in nodes.values()) + 1
    figure, axes = plt.subplots(figsize=(0.36 * levels + 1.2, 4.0))
    places = {name: place_of(node, nodes) for name, node in nodes.items()}
    for before, name in reduced(nodes):
        paint_edge(axes, places[before], places[name])
    for name, node in nodes.items():
        paint_node(axes, node, *places[name])
    stages = max(node.stage for node in nodes.values()) + 1
    axes.set_yticks([-stage for stage in range(stages)], [f"stage {i}" for i in range(stages)])
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([])
    axes.set_xlim(-0.8, levels - 0.2)
    axes.set_ylim(-stages + 0.5, 0.5)
    for side in ("left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_title("(t, d, p) = (4, 2, 3), 1F1B, two microbatches: operators of one GPU of each "
                   "stage", loc="left", fontweight="bold")
    handles = [plt.Rectangle((0, 0), 1, 1, facecolor=COLOURS[kind], edgecolor=style.EDGE_COLOUR,
                             linewidth=0.5, label=text) for kind, text in LEGEND.items()]
    figure.legend(handles=handles, loc="lower center", ncol=len(handles), frameon=False)
    figure.subplots_adjust(left=0.05, right=0.99, top=0.91, bottom=0.1)
    return figure


def paint_edge(axes, start, end):
    """Neighbours are joined straight; longer orders of a stage bend around its nodes."""
    bent = start[1] == end[1] and end[0] - start[0] > 1
    axes.annotate("", end, start, zorder=1, arrowprops={
        "arrowstyle": "-|>,head_length=0.25,head_width=0.12", "color": "#606060", "lw": 0.6,
        "shrinkA": 7, "shrinkB": 9, "connectionstyle": f"arc3,rad={-0.12 if bent else 0}"})


def paint_node(axes, node, x, y):
    short = {"tp all_reduce": "AR", "send": "P2P", "dp all_reduce": "grad\nAR", "optimizer": "WU"}
    colour = COLOURS[node.kind if node.kind in COLOURS else node.kind[0]]
    if isinstance(colour, str):
        text = "black"
    else:
        text = style.text_colour(colour)
    axes.text(x, y, short.get(node.kind, node.label), ha="center", va="center", fontsize=6,
              color=text, zorder=3,
              bbox={"boxstyle": "round,pad=0.25", "facecolor": colour, "lw": 0.5,
                    "edgecolor": style.EDGE_COLOUR})
