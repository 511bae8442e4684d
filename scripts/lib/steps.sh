# Runs named steps one after the other, goes on after a failure, and sums up. Sourced.
# shellcheck shell=bash

step_lines=()
failed_steps=0
failed_step_names=()

# step NAME COMMAND...: runs COMMAND with its output as it comes. Exit code 77: it was skipped.
step() {
  local name=$1 began=$SECONDS verdict=ok code=0
  shift
  printf '\n== %s\n' "$name"
  ("$@") </dev/null || code=$?
  if ((code == 77)); then
    verdict='skipped (it says why)'
  elif ((code)); then
    verdict="FAILED (exit $code)"
    failed_steps=$((failed_steps + 1))
    failed_step_names+=("$name")
  fi
  step_lines+=("$(printf '%-40s %5d s  %s' "$name" "$((SECONDS - began))" "$verdict")")
}

skip() { step_lines+=("$(printf '%-40s %5s    skipped: %s' "$1" - "$2")"); }

summary() {
  printf '\n== Summary\n'
  printf '%s\n' "${step_lines[@]}"
}

# The names of the steps that failed, with blanks between them.
failed_names() { printf '%s' "${failed_step_names[*]}"; }
