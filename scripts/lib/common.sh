# Shared by scripts/ and .ci/. Sourced, never run; the caller has set -euo pipefail.
# shellcheck shell=bash

# Where this checkout is, whatever directory the caller was started from.
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." >/dev/null && pwd -P)
me=${0##*/}

say() { printf '%s: %s\n' "$me" "$*" >&2; }

# Bad input: one line, exit 2.
usage_error() {
  say "$* See $0 --help."
  exit 2
}

# check_out NAME: of a result; the same words as src/python/longhaul/errors.py has.
check_out() {
  if [[ -z $1 || $1 == - ]]; then
    say "--out \"$1\" names no file or directory (results are not written to standard output). Name one."
    exit 2
  fi
}

die() {
  say "$*"
  exit 1
}

# The comment that opens a script is its help text.
show_help() { awk 'NR > 1 { if (!/^#/) exit; sub(/^# ?/, ""); print }' "$0"; }

have() { command -v -- "$1" >/dev/null 2>&1; }

# git refuses a checkout that another user owns (CI as root); these scripts only ever read.
repo_git() { git -c safe.directory="$root" -C "$root" "$@"; }

# NUL-separated paths below $root of the files git tracks, or would track once added.
source_files() {
  local path
  while IFS= read -r -d '' path; do
    if [[ -f $root/$path ]]; then printf '%s\0' "$path"; fi  # deleted here, not yet in the index
  done < <(repo_git ls-files -z --cached --others --exclude-standard -- "$@")
}

# nproc obeys OMP_NUM_THREADS, which says nothing about compilers or ranks.
core_count() {
  env -u OMP_NUM_THREADS -u OMP_THREAD_LIMIT nproc 2>/dev/null ||
    getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1
}

# KiB this process may still use: the machine's, or its control group's where that is less.
free_memory_kib() {
  local free limit file own
  free=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null || true)
  free=${free:-4194304}
  own=$(sed -n 's/^0:://p' /proc/self/cgroup 2>/dev/null || true)
  for file in "/sys/fs/cgroup$own/memory.max" /sys/fs/cgroup/memory.max \
    /sys/fs/cgroup/memory/memory.limit_in_bytes; do
    limit=$(cat "$file" 2>/dev/null || true)
    if [[ $limit =~ ^[0-9]+$ && ${#limit} -lt 19 ]] && ((limit / 1024 < free)); then
      free=$((limit / 1024))
    fi
  done
  echo "$free"
}

# A job for each core, but 1.5 GiB for each job. LONGHAUL_JOBS overrides.
job_count() {
  local jobs fit
  if [[ -n ${LONGHAUL_JOBS:-} ]]; then
    echo "$LONGHAUL_JOBS"
    return
  fi
  jobs=$(core_count)
  fit=$(($(free_memory_kib) / 1572864))
  if ((fit < jobs)); then jobs=$fit; fi
  if ((jobs < 1)); then jobs=1; fi
  echo "$jobs"
}

# The CUDA compiler, also where its directory is not in PATH; fails where there is none.
find_nvcc() {
  local candidate
  for candidate in "${CUDACXX:-}" nvcc "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; do
    if [[ -n $candidate ]] && have "$candidate"; then
      command -v -- "$candidate"
      return
    fi
  done
  return 1
}

# clang-format formats differently from release to release; this one is Debian 12's.
clang_format_version=14

find_clang_format() {
  local candidate
  for candidate in "clang-format-$clang_format_version" clang-format \
    "$root/.venv/bin/clang-format"; do
    if have "$candidate" &&
      "$candidate" --version | grep -q "version $clang_format_version\\."; then
      command -v -- "$candidate"
      return
    fi
  done
  # A newer Debian or Ubuntu has only newer ones; the index has them all.
  if "$root/.venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --only-binary=:all: "clang-format==$clang_format_version.0.6" >/dev/null 2>&1 </dev/null; then
    echo "$root/.venv/bin/clang-format"
    return
  fi
  say "no clang-format $clang_format_version (others format differently), and pip cannot get it." \
    "Install clang-format-$clang_format_version, or run scripts/setup where pip has an index."
  return 1
}
