# What the jobs of slurm/ have in common: they say what they will do, stop when Slurm warns them,
# go back to the queue, and go on from there. Sourced by the sbatch files, which set `job`.
# shellcheck shell=bash disable=SC2154

# shellcheck source=scripts/lib/common.sh
. "$(dirname -- "${BASH_SOURCE[0]}")/../../scripts/lib/common.sh"
# shellcheck source=slurm/lib/site.sh
. "$root/slurm/lib/site.sh"
# shellcheck source=slurm/lib/work.sh
. "$root/slurm/lib/work.sh"
me=$job
interrupted_code=143  # as of a program that SIGTERM ended

# How scontrol and squeue call this job; SLURM_JOB_ID alone may mean all tasks of an array.
job_name() {
  if [[ -n ${SLURM_ARRAY_JOB_ID:-} ]]; then
    printf '%s_%s\n' "$SLURM_ARRAY_JOB_ID" "$SLURM_ARRAY_TASK_ID"
  else
    printf '%s\n' "${SLURM_JOB_ID:-}"
  fi
}

# Where results go unless --out says: the same directory whenever this job is run again.
default_out() { printf '%s/runs/%s-%s\n' "$root" "$1" "${SLURM_ARRAY_JOB_ID:-${SLURM_JOB_ID:-JOB}}"; }

# describe WORDS...: one line of what the job is about to do.
describe() { printf '%s: %-9s %s\n' "$me" "$1" "${*:2}"; }

shown() { printf '%q ' "$@"; }

describe_job() {
  describe job "$(job_name) on ${SLURM_JOB_NUM_NODES:-?} nodes (${SLURM_JOB_NODELIST:-not in a job})," \
    "${SLURM_NTASKS:-?} ranks at most, start $((${SLURM_RESTART_COUNT:-0} + 1))"
  describe site "$site"
  describe launcher "$LONGHAUL_LAUNCHER $LONGHAUL_MPI_FLAGS"
  if ((${#LONGHAUL_MODULES[@]})); then describe modules "${LONGHAUL_MODULES[@]}"; fi
  if ((${#LONGHAUL_CONTAINER[@]})); then describe container "$(shown "${LONGHAUL_CONTAINER[@]}")"; fi
}

is_dry_run() { [[ ${DRY_RUN:-0} != 0 ]]; }

stopping=${stopping:-no} worker=''
stop_worker() {
  stopping=yes
  if [[ -n $worker ]]; then kill -TERM -- "-$worker" 2>/dev/null || true; fi
}

trap stop_worker TERM INT

# A worker that was told to stop gets 20 s to do so (a job that sets `patience`: so many), and so does
# all that it started.
await_worker() {
  local tenths=0
  while [[ $stopping == no ]] && kill -0 "$worker" 2>/dev/null; do
    wait "$worker" || true  # comes back early when a signal does
  done
  if [[ $stopping == no ]]; then return; fi
  while kill -0 -- "-$worker" 2>/dev/null && ((tenths++ < 10 * ${patience:-20})); do sleep 0.1; done
  kill -KILL -- "-$worker" 2>/dev/null || true
}

# Runs COMMAND in a process group of its own, so that a signal reaches all that it started, and
# ends this job with its exit code. Where Slurm told the job to stop (B:TERM, before the time
# limit) and the work is not done, the job goes back to the queue; not with one of $final_codes.
run_and_finish() {
  local code=0
  if [[ $stopping == yes ]]; then go_back_to_queue; fi
  set -m
  "$@" </dev/null &
  worker=$!
  set +m
  if [[ $stopping == yes ]]; then stop_worker; fi  # the signal came just before
  await_worker
  wait "$worker" || code=$?
  if [[ $stopping == yes && $code != 0 && " ${final_codes:-} " != *" $code "* ]]; then
    go_back_to_queue
  fi
  exit "$code"
}

# A job that its user cancelled gets a SIGTERM as well, but is no longer RUNNING then.
go_back_to_queue() {
  local name state restarts=${SLURM_RESTART_COUNT:-0}
  name=$(job_name)
  if [[ -z $name ]]; then
    say 'stopped by a signal. The same command with the same --out goes on from here.'
    exit "$interrupted_code"
  fi
  state=$(squeue --noheader --jobs="$name" --format=%T 2>/dev/null || echo UNKNOWN)
  if [[ $state != RUNNING ]]; then
    say "stopped; the job is $state and stays so. What is finished lies in $out."
    exit "$interrupted_code"
  fi
  if ((restarts >= LONGHAUL_MAX_RESTARTS)); then
    say "stopped after $restarts restarts (LONGHAUL_MAX_RESTARTS in $site). Submit again with --out $out to go on."
    exit 3
  fi
  say "stopped before the time limit; back to the queue, to go on in $out"
  trap '' TERM  # queueing it again ends this script too
  scontrol requeue "$name" || {
    say "the job cannot be queued again (see above). Submit again with --out $out to go on."
    exit 3
  }
  exit "$interrupted_code"
}
