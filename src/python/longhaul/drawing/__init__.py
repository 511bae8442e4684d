"""Draws: styles, timelines in panels, tables of cells; what a figure is (`figure`)."""
