"""Starts our programs and reads their results: one call, many predictions, a sweep on ranks."""
