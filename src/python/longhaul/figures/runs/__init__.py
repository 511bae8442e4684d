"""Figures of any run, of no paper."""
