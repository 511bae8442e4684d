"""Every figure of scripts/figure, in the order in which it lists them."""

from importlib import import_module

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
    "runs.profile_to_schedule",
    "runs.loss",
)
MODULES = tuple(import_module(f"longhaul.figures.{name}") for name in LISTED)
FIGURES = {module.NAME: module for module in MODULES}
