"""Figures and tables of Centauri."""
