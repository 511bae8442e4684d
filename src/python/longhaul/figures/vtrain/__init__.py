"""Figures and tables of vTrain."""
