"""What papers claim and which numbers are expected, and what our numbers say about it."""
