# What a job is asked to do: scenarios, how many ranks they need, lines of a sweep file. Sourced by
# slurm/submit and by the jobs, after common.sh.
# shellcheck shell=bash disable=SC2154

# Of those that measure.
# shellcheck disable=SC2034
most_ranks_of_figures=16

# in_python CODE ARGUMENTS...: with src/python/longhaul in reach.
in_python() {
  local python=$root/.venv/bin/python
  [[ -x $python ]] || usage_error 'no .venv in this checkout (src/python/longhaul runs in it). Run scripts/setup where packages can be installed.'
  PYTHONPATH=$root/src/python "$python" -c "$@"
}

# A path, or the name of a file in benchmarks/scenarios; prints its absolute path.
find_scenario() {
  local candidate
  for candidate in "$1" "$root/benchmarks/scenarios/$1" "$root/benchmarks/scenarios/$1.toml"; do
    if [[ -f $candidate ]]; then
      realpath -- "$candidate"
      return
    fi
  done
  usage_error "no scenario $1 (no such file, here or in benchmarks/scenarios). Give a .toml file."
}

# ranks_of SCENARIO OPTIONS...: stages * replicas, as `--set` among the options changes them.
ranks_of() {
  in_python '
import sys
from longhaul import errors, scenario_text
name, scenario, *words = sys.argv[1:]
settings = [b for a, b in zip(words, words[1:]) if a == "--set"]
settings += [word[len("--set="):] for word in words if word.startswith("--set=")]
sys.exit(errors.guarded(lambda: print(scenario_text.ranks_of(scenario, settings)), name))' "$me" "$@"
}

# before_queue pipeline SCENARIO OPTIONS... or sweep FILE: prints the ranks it needs; ends with exit
# code 2 where bench_pipeline, as far as it can be run here, would refuse the options.
before_queue() {
  local python=$root/.venv/bin/python
  [[ -x $python ]] || usage_error 'no .venv in this checkout (src/python/longhaul runs in it). Run scripts/setup where packages can be installed.'
  (
    if (enter_site) >/dev/null 2>&1; then enter_site >/dev/null 2>&1; fi
    export LONGHAUL_BIN=${LONGHAUL_BIN:-$root/build/bin} PYTHONPATH=$root/src/python
    exec "$python" -m longhaul.commands.before_queue "$me" "$@"
  )
}

# can_resume OPTIONS...: does bench_pipeline, or bench_prefill, take --resume beside these
# (docs/faults.md)?
can_resume() {
  local before='' word
  for word in "$@"; do
    case $before:$word in
      *:--adaptive | *:--change | *:--change=* | --trace:off | *:--trace=off) return 1 ;;
      --controller:live | *:--controller=live | --compute:real | *:--compute=real) return 1 ;;
    esac
    before=$word
  done
}

# The lines of a sweep file that say something.
sweep_lines() {
  [[ -f $1 && -r $1 ]] || usage_error "no sweep file $1 (a line of options of scripts/sweep for each task). Give one."
  grep -vE '^[[:space:]]*(#|$)' -- "$1" || usage_error "$1: no line that says what to run (all are empty or comments). Write one."
}

# sweep_words FILE TASK: the words of the TASKth line, NUL-separated, quotes read as a shell would
# read them and nothing else done to them.
sweep_words() {
  local line
  line=$(sweep_lines "$1" | sed -n "${2}p")
  [[ -n $line ]] || usage_error "$1: no line for task $2 (it has $(sweep_lines "$1" | wc -l)). Submit with --array=1-$(sweep_lines "$1" | wc -l)."
  in_python '
import shlex, sys
try:
    words = shlex.split(sys.argv[1])
except ValueError as error:
    sys.exit(f"{sys.argv[2]}: line {sys.argv[1]!r}: {error}")
sys.stdout.write("".join(word + "\0" for word in words))' "$line" "$1" || exit 2
}
