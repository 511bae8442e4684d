"""Reads traces and records of Longhaul's programs and draws them: docs/figures.md. Makes, checks
and simulates schedules, where the module longhaul_native was built (docs/install.md):

    import longhaul
    scenario = longhaul.Scenario.load("benchmarks/scenarios/m70-2dc.toml")
    schedule = longhaul.make_schedule("zb-h1", scenario)
    print(longhaul.simulate(schedule, scenario).makespan_ns)

Every command of the tool is a function of longhaul.tool.
"""

NATIVE = ("Comm", "Error", "Prediction", "Row", "Scenario", "Schedule", "ask", "commands", "make_schedule",
          "schedule_names", "simulate", "version", "why_invalid")


def __getattr__(name):
    """The compiled names, on first use: figures and traces need none of them."""
    if name not in NATIVE:
        raise AttributeError(f"module 'longhaul' has no attribute '{name}'")
    try:
        import longhaul_native
    except ImportError as error:
        raise ImportError(
            f"longhaul.{name} is in the compiled module longhaul_native, which is not here "
            f"({error}). Build it (docs/install.md) and add its directory to PYTHONPATH.") from error
    return getattr(longhaul_native, name)


def __dir__():
    return sorted({*globals(), *NATIVE})
