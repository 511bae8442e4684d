"""Stand-ins for Longhaul's programs: they write what the real ones would, from made-up numbers."""

import os
import stat
import sys
from pathlib import Path
from unittest import mock

HERE = Path(__file__).resolve().parent

# mpirun: runs the program once, whatever the number of ranks.
MPIRUN = """#!/bin/sh
if [ "$1" = --version ]; then echo 'mpirun (Open MPI) 4.1.4'; exit 0; fi
while [ $# -gt 0 ]; do case $1 in */bench_*) exec "$@";; esac; shift; done
"""

# Per microbatch: 100 ms and, on top, 10 ms times the place of the schedule in the list; 1 ms for
# each unit of delay; 0.5 ms where grouped; 20 ms where recomputed.
LONGHAUL = """
import json, os
words = sys.argv
assert words[1] == 'simulate', words
if '--json' in words:
    with open(os.environ['CALLS'], 'a') as calls:
        calls.write('|'.join(words[1:]) + '\\n')
    sets = dict(w.split('=') for w in words if '=' in w)
    ms = 100 + float(sets['link.latency_ratio']) + float(sets['link.transfer_ratio'])
    ms += .5 * (words[words.index('--comm') + 1] == 'grouped')
    ms += 20 * (sets.get('memory.recompute') == 'true')
    print(json.dumps({'schedules': [
        {'schedule': name, 'per_microbatch_ns': int(1e6 * (ms + 10 * index))}
        for index, name in enumerate(words[words.index('--schedule') + 1].split(','))]}))
    sys.exit()
import synthetic
zero = 'link.latency_ratio=0' in words
generators = {'1f1b': synthetic.one_f_one_b, 'zb-h1': synthetic.zb_h1,
              'interleaved-1f1b': synthetic.interleaved}
timeline = synthetic.Timeline()
for name in words[words.index('--schedule') + 1].split(','):
    if name in generators:
        timeline.play(name, generators[name](4, 8), {'F': 1000, 'B': 2000, 'D': 1000, 'W': 1000},
                      0 if zero else 2000, 0)
synthetic.write(words[words.index('--out') + 1], timeline)
"""

# Fails once for each output directory that ends in the value of FAIL_ONCE.
BENCH_PIPELINE = """
import json, os, pathlib
words = sys.argv
out = pathlib.Path(words[words.index('--out') + 1])
out.mkdir()  # never overwrites a result
with open(os.environ['CALLS'], 'a') as calls:
    calls.write(out.name + '\\n')
fail = os.environ.get('FAIL_ONCE')
if fail and out.name == fail and not list(out.parent.glob('*.unfinished-*')):
    sys.exit('rank 3 is stuck')
sets = dict(w.split('=') for w in words if w.startswith(('link.', 'run.')))
slow = 1 + float(sets['link.latency_ratio']) + float(sets['link.transfer_ratio'])
comm = words[words.index('--comm') + 1]
scale = float(sets.get('run.time_scale', 1))
schedules = []
for index, name in enumerate(words[words.index('--schedule') + 1].split(',')):
    predicted = int(1e9 * slow * scale * (1 - .1 * index) * (1.3 if comm == 'grouped' else 1))
    schedules.append({'schedule': name, 'predicted_ns': predicted, 'n': 5, 'check': 'ok',
                      'measured_median_ns': int(predicted * 1.01),
                      'measured_min_ns': int(predicted * 1.005),
                      'measured_p95_ns': int(predicted * 1.02)})
record = {'schema_version': 1, 'git_commit': 'c0ffee', 'command_line': ' '.join(words),
          'scenario': {'name': pathlib.Path(words[1]).stem}, 'comm': comm, 'time_scale': scale,
          'environment': {'load_average': {'after': [0.7, 0.4, 0.3],
                                             'before': [0.5, 0.4, 0.3]}}, 'schedules': schedules}
(out / 'record.json').write_text(json.dumps(record))
"""

BENCH_LINK = """
import json, pathlib, random
out = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])
out.mkdir()
source = random.Random(1)
measurements = [{'test': test, 'target_ns': target,
                 'samples_ns': [target * (1 + source.gauss(.004, .002)) for _ in range(40)]}
                for test in ('latency', 'bandwidth')
                for target in (500_000, 1_000_000, 10_000_000, 100_000_000)]
(out / 'record.json').write_text(json.dumps({'schema_version': 1, 'measurements': measurements}))
"""

PROGRAMS = {"longhaul": LONGHAUL, "bench_pipeline": BENCH_PIPELINE, "bench_link": BENCH_LINK}


def install(test, directory):
    """Makes the programs in `directory` and points the environment at them until `test` ends."""
    directory = Path(directory)
    for name, text in PROGRAMS.items():
        header = (f"#!{sys.executable}\nimport sys\nsys.path[:0] = {sys.path!r}\n"
                  f"sys.path.insert(0, {str(HERE)!r})\n")
        _program(directory / name, header + text)
    _program(directory / "mpirun", MPIRUN)
    (directory / "calls").write_text("")
    patch = mock.patch.dict(os.environ, {
        "LONGHAUL_BIN": str(directory), "LONGHAUL_MPIRUN": str(directory / "mpirun"),
        "LONGHAUL_LAUNCHER": "mpirun", "CALLS": str(directory / "calls")})
    patch.start()
    test.addCleanup(patch.stop)
    return directory


def calls(directory):
    return (Path(directory) / "calls").read_text().split()


def _program(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
