"""Claims of papers, ranges in which numbers are expected, and verdicts of our numbers on both."""
