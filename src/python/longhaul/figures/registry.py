"""Every figure of scripts/figure, in the order in which it lists them.

A new figure is a module below this folder and its line in LISTED: its options, its place in
scripts/reproduce and in docs/figures.md, and the ranges of its numbers follow from its FIGURE."""

from dataclasses import replace
from importlib import import_module

OWN = "longhaul"  # in Repeat: a figure of no paper
LISTED = (
    "runs.timeline",
    "crosspipe.table2",
    "crosspipe.table3",
    "crosspipe.table5",
    "crosspipe.table6",
    "crosspipe.fig5",
    "crosspipe.fig6",
    "crosspipe.fig8",
    "crosspipe.fig9",
    "crosspipe.fig11",
    "crosspipe.fig12",
    "crosspipe.fig14",
    "crosspipe.fig15",
    "crosspipe.fig17",
    "crosspipe.static",
    "crosspipe.hot_switch",
    "runs.weather",
    "runs.collectives",
    "runs.wan_collectives",
    "advice.all_six",
    "runs.internet_scale",
    "atlas.table1",
    "atlas.fig2",
    "atlas.fig3",
    "atlas.fig4",
    "atlas.fig5",
    "atlas.fig6",
    "atlas.fig9",
    "atlas.fig10",
    "atlas.fig11",
    "atlas.fig12",
    "atlas.ideas",
    "atlas.tcp",
    "bubbletea.fig13",
    "bubbletea.fig14",
    "bubbletea.frontier",
    "bubbletea.value",
    "bubbletea.drift",
    "bubbletea.placement",
    "bubbletea.wait",
    "bubbletea.gpus",
    "bubbletea.failure",
    "bubbletea.on_gpu",
    "bubbletea.untouched",
    "centauri.fig1",
    "centauri.fig3",
    "centauri.fig5",
    "centauri.fig6",
    "centauri.fig7",
    "centauri.fig8",
    "centauri.fig9",
    "centauri.fig10",
    "centauri.fig11",
    "centauri.fig12",
    "centauri.fig13",
    "centauri.fig14",
    "centauri.table1",
    "centauri.table2",
    "centauri.ideas",
    "centauri.rules",
    "centauri.gap",
    "centauri.price",
    "centauri.tuned",
    "centauri.inputs",
    "vtrain.fig1",
    "vtrain.fig5",
    "vtrain.fig7",
    "vtrain.fig8",
    "vtrain.fig9",
    "vtrain.fig10",
    "vtrain.fig11",
    "vtrain.table1",
    "vtrain.fig12",
    "vtrain.fig13",
    "vtrain.fig14",
    "vtrain.table3",
    "vtrain.speed",
    "vtrain.sites",
    "stella.table2",
    "stella.fig10",
    "stella.fig3",
    "stella.fig14",
    "stella.adaptation",
    "stella.fig2",
    "stella.fig8",
    "stella.fig9",
    "stella.fig11",
    "stella.ablation",
    "stella.gpt2",
    "stella.fig12",
    "stella.fig13",
    "stella.fig15",
    "stella.table1",
    "stella.fig4",
    "stella.fig5",
    "stella.fig6",
    "runs.train_methods",
    "runs.train_foretold",
    "runs.train_blocks",
    "runs.train_ddp",
    "stella.train_fresh",
    "stella.train_weather",
    "stella.train_pipeline",
    "centauri.measured",
    "runs.profile_to_schedule",
    "runs.loss",
)
MODULES = tuple(import_module(f"longhaul.figures.{name}") for name in LISTED)
FIGURES = {module.FIGURE.name: module for module in MODULES}  # {name: module}


def repeated():
    """{paper: its figures}, for scripts/reproduce."""
    found = {}
    for module in MODULES:
        if module.FIGURE.repeat:
            found.setdefault(module.FIGURE.repeat.paper, []).append(module.FIGURE)
    return {paper: tuple(figures) for paper, figures in found.items()}


PAPERS = repeated()


def expected(paper):
    """Ranges of all numbers of a paper, simulated ones first, each with its figure and file."""
    numbers = [replace(one, figure=figure.name, file=figure.name + one.file)
               for figure in PAPERS[paper] for one in figure.expected]
    return sorted(numbers, key=lambda one: one.kind != "simulated")
