"""Figures and tables of Atlas."""
