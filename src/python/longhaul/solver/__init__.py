"""Solves the problems that the planner writes: CP-SAT, and the integer program of prior work."""
