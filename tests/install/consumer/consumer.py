"""A stranger's program: imports the installed package alone."""

import sys

import longhaul

scenario = longhaul.Scenario.load(sys.argv[1])
schedule = longhaul.make_schedule("zb-h1", scenario)
assert longhaul.why_invalid(schedule, scenario) is None
prediction = longhaul.simulate(schedule, scenario)
print(f"Python: zb-h1 takes {prediction.makespan_ns} ns, {len(prediction.rows)} rows")
assert max(row.end_ns for row in prediction.rows) == prediction.makespan_ns
again = longhaul.Schedule.from_csv(schedule.csv())
assert [again.row(d) for d in range(again.devices)] == [
    schedule.row(d) for d in range(schedule.devices)]
wave = longhaul.make_schedule("best", scenario, moves=100, threads=1, placement="wave")
assert wave.device_of_chunk == [*range(8), *reversed(range(8))]
assert wave.pytorch_csv()
try:
    longhaul.make_schedule("no-such", scenario)
except longhaul.Error as error:
    print("Python:", error)
else:
    sys.exit("an unknown schedule was made")
