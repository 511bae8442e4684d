"""Reads what Longhaul's programs write, and draws it: docs/figures.md."""
