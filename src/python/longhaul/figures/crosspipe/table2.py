"""CrossPipe table 2 and footnote 6: how much pipelines and replicas across datacenters have to
send, from the dimensions of models."""

import json

import pandas as pd

from longhaul.drawing import textgrid
from longhaul.drawing.figure import Drawn, Figure, Repeat
from longhaul.papers import claims
from longhaul.papers.expected import Expected
from longhaul.running import tools

FIGURE = Figure(
    "crosspipe-table2",
    summary=("parameters per width of five models, and what data parallelism sends for each byte "
             "of PP"),
    shows="bytes that pipelines and replicas send, five models (and footnote 6)",
    repeat=Repeat("crosspipe", seconds=2, simulate=("--simulate",)),
    expected=(
        Expected("N / d of Mistral 7B (millions)", "published", low=1.765, high=1.775,
                 column="our_millions_per_width", where="model=Mistral 7B",
                 why="Table 2, as it is printed."),
        Expected("N / d of Mixtral 8x7B (millions)", "published", low=11.35, high=11.45,
                 column="our_millions_per_width", where="model=Mixtral 8x7B",
                 why="Table 2, as it is printed."),
        Expected("N / d of Qwen2.5 32B (millions)", "published", low=6.405, high=6.415,
                 column="our_millions_per_width", where="model=Qwen2.5 32B",
                 why="Table 2, as it is printed."),
        Expected("N / d of DeepSeek V3 (millions)", "published", low=95.55, high=95.65,
                 column="our_millions_per_width", where="model=DeepSeek V3",
                 why="Table 2, as it is printed."),
        Expected("N / d of Llama 3 405B (millions)", "published", low=24.75, high=24.85,
                 column="our_millions_per_width", where="model=Llama 3 405B",
                 why="Table 2, as it is printed."),
        Expected("N / (s d n_DP) of Llama 3 405B", "published", low=23.55, high=23.65,
                 column="our_volume_ratio", where="model=Llama 3 405B",
                 why="Footnote 6, as it is printed."),
        Expected("N / (s d n_DP) of DeepSeek V3", "published", low=181.5, high=182.5,
                 column="our_volume_ratio", where="model=DeepSeek V3",
                 why="Footnote 6, as it is printed."),
    ))
PUBLISHED = tools.ROOT / "results" / "papers" / "crosspipe-table2.csv"
# Models that a scenario may name; ours are counted from their dimensions.
PRESETS = {"Llama 3 405B": "llama3-405b"}
NEAR = 0.05


def add_arguments(parser):
    parser.add_argument("--simulate", action="store_true",
                        help="computed, not measured (always so)")


def draw(options):
    del options
    table = compare(pd.read_csv(PUBLISHED, comment="#"), presets())
    return [Drawn(FIGURE.name, figure_of(table), table, verdicts(table))]


def presets():
    """{name: (width, parameters)} of the models that a scenario may name."""
    record = json.loads(tools.run([tools.binary("longhaul"), "presets", "--json"]))
    return {model["name"]: (model["hidden"], model["parameters"]) for model in record["models"]}


def compare(table, known):
    """The published rows with ours beside them. `known`: presets()."""
    table = table.copy()
    for index, row in table.iterrows():
        hidden, parameters = known.get(PRESETS.get(row["model"]),
                                       (row["hidden"], row["parameters_billions"] * 1e9))
        table.loc[index, "our_source"] = ("preset " + PRESETS[row["model"]]
                                          if row["model"] in PRESETS else "the paper's N and d")
        table.loc[index, "our_hidden"] = hidden
        table.loc[index, "our_parameters_billions"] = round(parameters / 1e9, 2)
        table.loc[index, "our_millions_per_width"] = round(parameters / hidden / 1e6, 2)
        if row["sequence_length"] > 0:
            sent = row["sequence_length"] * hidden * row["replicas"]
            table.loc[index, "our_volume_ratio"] = round(parameters / sent, 1)
    return table


def verdicts(table):
    rows = table.set_index("model")
    off = (rows["our_millions_per_width"] / rows["millions_per_width"] - 1).abs()
    found = [claims.judge(
        "width-per-parameter", claims.by_count(int((off <= 0.01).sum()), len(off)),
        ", ".join(f"{value:.3g}" for value in rows["our_millions_per_width"]),
        f"The largest difference is {100 * off.max():.1f}% ({off.idxmax()}).")]
    for claim, model in (("volume-ratio-llama", "Llama 3 405B"),
                         ("volume-ratio-deepseek", "DeepSeek V3")):
        row = rows.loc[model]
        ours = row["our_volume_ratio"]
        found.append(claims.judge(
            claim, claims.within(ours, claims.value(claim), NEAR), f"{ours:.1f}",
            f"{row['our_parameters_billions']:.1f} billion / ({row['sequence_length']:.0f} x "
            f"{row['our_hidden']:.0f} x {row['replicas']:.0f})."))
    dense = rows[rows["kind"] == "dense"]["our_millions_per_width"]
    experts = rows[rows["kind"] == "experts"]["our_millions_per_width"]
    same = rows["our_hidden"] == rows.loc["Mistral 7B", "our_hidden"]
    pair = rows[same]["our_millions_per_width"]
    found.append(claims.judge(
        "experts-favour-pipelines",
        claims.by_count(int(pair["Mixtral 8x7B"] > pair["Mistral 7B"])
                        + int(experts.max() > dense.max()), 2),
        f"N/d {pair['Mixtral 8x7B']:.1f} against {pair['Mistral 7B']:.2f} million at d = 4096; "
        f"the largest are {experts.max():.1f} with experts and {dense.max():.1f} without"))
    return found


def figure_of(table):
    cells = [[row.kind, f"{row.our_hidden:.0f}",
              _pair(row.parameters_billions, row.our_parameters_billions),
              _pair(row.millions_per_width, row.our_millions_per_width),
              _pair(row.volume_ratio, row.our_volume_ratio), row.our_source]
             for row in table.itertuples()]
    grid = textgrid.Grid(
        "CrossPipe table 2 and footnote 6: what crosses between datacenters",
        ["kind", "width d", "parameters N\n(10⁹)", "N / d\n(10⁶)", "N / (s d n_DP)",
         "ours from"],
        list(table["model"]), cells, corner="model", column_inches=1.35, row_heading_inches=1.3,
        note="Above: the paper's value. Below: ours. N / (s d n_DP): what replicas across "
             "datacenters send for each\nelement that pipelines send (footnote 6: "
             "Llama s = 8192, DeepSeek s = 4096, n_DP = 128).")
    return textgrid.draw(grid)


def _pair(theirs, ours):
    return "-" if pd.isna(theirs) else f"{theirs:.4g}\n{ours:.4g}"
