"""Starts our programs and finds what they left: one call, many predictions, a sweep on ranks."""
