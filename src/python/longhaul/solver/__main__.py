"""python -m longhaul.solver PROBLEM.json ANSWER.json, which the planner starts."""

import sys

from longhaul import progress
from longhaul.solver.cp_sat import main

if __name__ == "__main__":
    with progress.shown("solve"):
        code = main()
    sys.exit(code)
