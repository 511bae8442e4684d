# What runs of this user left in shared memory when they were killed. Sourced by scripts/mpi.
# shellcheck shell=bash

# Files of a run that begins are younger than that, so none is taken from it, not even where
# containers share /dev/shm and not their processes: once all ranks have opened a file, its name
# is not needed.
leftover_age='-60 seconds'

# old_own DIRECTORY TYPE PATTERN: paths, a line each, of this user's own.
old_own() {
  find "$1/" -maxdepth 1 -user "$(id -u)" -type "$2" -name "$3" ! -newermt "$leftover_age" 2>/dev/null
}

# remove_leftovers: of our own (longhaul-PID-NS) and of Open MPI's session directories those whose
# process is gone; of Open MPI's segments those that no process has mapped.
remove_leftovers() {
  local path sessions mapped='' user
  user=$(id -u) sessions=${TMPDIR:-/tmp}/ompi.$(uname -n | cut -d . -f 1).$user
  while IFS= read -r path; do
    [[ $path =~ /longhaul-([0-9]+)-[0-9]+$ && ! -e /proc/${BASH_REMATCH[1]} ]] || continue
    rm -f -- "$path"
  done < <(old_own /dev/shm f 'longhaul-*')
  while IFS= read -r path; do
    [[ $path =~ /vader_segment\.[^/]+\."$user"\.[0-9a-f]+\.[0-9]+$ ]] || continue
    if [[ -z $mapped ]]; then mapped=:$(grep -hsoE '/vader_segment[^ ]+' /proc/[0-9]*/maps | sort -u); fi
    grep -qxF -- "/${path##*/}" <<<"${mapped#:}" || rm -f -- "$path"
  done < <(old_own /dev/shm f 'vader_segment.*')
  if [[ ! -d $sessions || -L $sessions ]]; then return; fi
  while IFS= read -r path; do
    [[ $path =~ /pid\.([0-9]+)$ && ! -e /proc/${BASH_REMATCH[1]} ]] || continue
    rm -rf -- "$path"
  done < <(old_own "$sessions" d 'pid.*')
}
