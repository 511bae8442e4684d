"""Figures and tables of CrossPipe."""
