# What a command is at, and for how long, once that has taken more than 2 s: one line on stderr, where that
# is a terminal. Sourced.
# shellcheck shell=bash disable=SC2154

progress_ticker=''

# tick TEXT LOG: the steps that a build or a test counts in LOG ("[17/250]") are shown, too.
tick() {
  local begin=$SECONDS step
  sleep 2
  while kill -0 $$ 2>/dev/null; do
    step=$(tail -c 400 -- "$2" 2>/dev/null | grep -o '^\[[0-9]*/[0-9]*\]' | tail -n 1) || true
    printf '\r%s: %s ... %d s %s\033[K' "$me" "$1" $((SECONDS - begin)) "$step" >&2
    sleep 1
  done
}

# show_progress TEXT [LOG]: until stop_progress.
show_progress() {
  [[ -t 2 ]] || return 0
  tick "$1" "${2:-/dev/null}" &
  progress_ticker=$!
}

stop_progress() {
  if [[ -z $progress_ticker ]]; then return 0; fi
  kill "$progress_ticker" 2>/dev/null || true
  wait "$progress_ticker" 2>/dev/null || true
  progress_ticker=''
  printf '\r\033[K' >&2
}

# with_progress TEXT COMMAND...: COMMAND says nothing on the terminal itself.
with_progress() {
  local code=0
  show_progress "$1"
  "${@:2}" || code=$?
  stop_progress
  return "$code"
}
