"""The programs of scripts/: each has main(arguments), which returns the exit code."""
