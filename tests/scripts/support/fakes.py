"""Fakes of Longhaul's programs: they write records as the real ones do, from synthetic numbers."""

import os
import stat
import sys
from pathlib import Path
from unittest import mock

from longhaul.errors import Failure
from longhaul.running import tools

HERE = Path(__file__).resolve().parent

# mpirun: runs the program once, whatever the number of ranks.
MPIRUN = """#!/bin/sh
if [ "$1" = --version ]; then echo 'mpirun (Open MPI) 4.1.4'; exit 0; fi
while [ $# -gt 0 ]; do case $1 in */bench_*) exec "$@";; esac; shift; done
"""

# Per microbatch: 100 ms and, on top, MS of the schedule; 1 ms for each unit of delay; 0.5 ms where
# grouped; 20 ms where recomputed. A schedule with parts or chunks pays 2 ms for a unit of delay,
# a loop 3. Messages between stages 1 and 2: 2, 4 and 6 a microbatch.
LONGHAUL = """
import json, os
words = sys.argv
MS = {'1f1b': 0, 'zb-h1': 10, 'zbv': 20, 'interleaved-1f1b': 5, 'cross-ud': -10,
      'cross-ud-sub': -11, 'cross-wave': -12, 'cross-loop': -5, 'best': -20,
      'cross-ud-opt': -20, 'cross-wave-opt': -21}
PLACEMENT = {'zbv': 2, 'cross-wave': 2, 'interleaved-1f1b': 3, 'cross-loop': 3,
             'cross-wave-opt': 2}
assert words[1] in ('simulate', 'presets'), words
if words[1] == 'presets':
    print(json.dumps({'models': [{'name': 'llama3-405b', 'hidden': 16384,
                                  'parameters': 405849243648}],
                      'schedules': [{'name': name} for name in MS if '-opt' not in name]}))
    sys.exit()
sets = dict(w.split('=', 1) for w in words if '=' in w)
microbatches = int(sets.get('parallel.microbatches', 8))
names = words[words.index('--schedule') + 1].split(',')
if '--json' in words:
    with open(os.environ['CALLS'], 'a') as calls:
        calls.write('|'.join(words[1:]) + '\\n')
    wave = '--placement' in words and {'ud': 1, 'wave': 2, 'loop': 3}[
        words[words.index('--placement') + 1]]
    ms = 100 + .5 * (words[words.index('--comm') + 1] == 'grouped')
    ms += 20 * (sets.get('memory.recompute') == 'true') - 2 * (sets.get('memory.budget') == '2')
    delays = float(sets.get('link.latency_ratio', 0)), float(sets.get('link.transfer_ratio', 0))
    schedules = []
    for name in names:
        chunks = wave or PLACEMENT.get(name, 1)
        one = ms + MS[name] + chunks * delays[0] + chunks * delays[1]
        schedules.append({
            'schedule': name, 'per_microbatch_ns': int(1e6 * one),
            'makespan_ns': int(1e6 * one) * microbatches, 'bubble_ratio': [.2, .1 + one / 1e4],
            'peak_activation': [4.0, 3.0], 'dp_overlap': .25,
            'resources': [{'resource': link, 'holds': chunks * microbatches}
                          for link in ('link 1>2', 'link 2>1')]
                         + [{'resource': 'link 0>1', 'holds': microbatches},
                            {'resource': 'collective 0', 'holds': 2}]})
    print(json.dumps({'schedules': schedules}))
    sys.exit()
import synthetic
zero = 'link.latency_ratio=0' in words
generators = {'1f1b': synthetic.one_f_one_b, 'zb-h1': synthetic.zb_h1,
              'cross-ud': synthetic.zb_h1, 'cross-bd': synthetic.zb_h1,
              'cross-loop': synthetic.zb_h1, 'cross-wave': synthetic.zb_h1,
              'interleaved-1f1b': synthetic.interleaved}
timeline = synthetic.Timeline()
for name in names:
    if name in generators:
        timeline.play(name, generators[name](4, microbatches),
                      {'F': 1000, 'B': 2000, 'D': 1000, 'W': 1000}, 0 if zero else 2000, 0)
synthetic.write(words[words.index('--out') + 1], timeline)
"""

# Fails once for each output directory that ends in the value of FAIL_ONCE; of DIE_ONCE: it leaves a
# run that can be gone on with. COMMIT is the commit that it was built from.
BENCH_PIPELINE = """
import json, os, pathlib
words = sys.argv
if '--version' in words:
    print('0.1.0 (' + os.environ.get('COMMIT', 'c0ffee') + ')')
    sys.exit()
out = pathlib.Path(words[words.index('--out') + 1])
goes_on = '--resume' in words and (out / 'input.json').is_file()
out.mkdir(exist_ok=goes_on)  # never overwrites a result
with open(os.environ['CALLS'], 'a') as calls:
    calls.write(out.name + '\\n')
fail = os.environ.get('FAIL_ONCE')
if fail and out.name == fail and not list(out.parent.glob('*.unfinished-*')):
    sys.exit('rank 3 is stuck')
(out / 'input.json').write_text('{}')
if os.environ.get('DIE_ONCE') == out.name and not goes_on:
    sys.exit(137)
sets = dict(w.split('=') for w in words if w.startswith(('link.', 'run.', 'parallel.')))
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
record = {'schema_version': 1, 'git_commit': os.environ.get('COMMIT', 'c0ffee'), 'command_line': ' '.join(words),
          'scenario': {'name': pathlib.Path(words[1]).stem}, 'comm': comm, 'time_scale': scale,
          'compute': {'compute': 'timed'}, 'network': 'emulated', 'payload_bytes': 65536,
          'lateness_credit_ns': 1000000,
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


def is_built(name):
    """For tests that need a program."""
    try:
        return bool(tools.binary(name))
    except Failure:
        return False


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
