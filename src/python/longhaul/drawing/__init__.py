"""Draws: styles, timelines in panels, tables of cells; and the facts of a figure (`figure`)."""
