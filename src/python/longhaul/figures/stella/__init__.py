"""Figures after StellaTrain."""
