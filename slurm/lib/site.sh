# slurm/site.env, read and checked. Sourced by slurm/submit and by the jobs, after common.sh.
# shellcheck shell=bash disable=SC2034,SC2154

known_site_names=(
  LONGHAUL_PARTITION LONGHAUL_ACCOUNT LONGHAUL_QOS LONGHAUL_CONSTRAINT LONGHAUL_TIME
  LONGHAUL_SBATCH LONGHAUL_RANKS_PER_NODE LONGHAUL_CPUS_PER_RANK LONGHAUL_GPUS_PER_NODE
  LONGHAUL_GPU_OPTION LONGHAUL_MODULES LONGHAUL_LAUNCHER LONGHAUL_MPI_FLAGS LONGHAUL_BIN
  LONGHAUL_CONTAINER LONGHAUL_CONTAINER_BIN LONGHAUL_MAX_RESTARTS
)

# site_error NAME WHY: the value of NAME is wrong.
site_error() { usage_error "$site: $1=${!1} ($2). Correct it there."; }

refuse_unknown_site_names() {
  local line name
  while IFS=: read -r line name; do
    name=${name##*[[:space:]]}
    name=${name%%[+=]*}
    [[ " ${known_site_names[*]} " == *" $name "* ]] ||
      usage_error "$site:$line: unknown name $name (slurm/site.env lists those there are). Correct it there."
  done < <(grep -noE '^[[:space:]]*(export[[:space:]]+)?LONGHAUL_[A-Za-z0-9_]*\+?=' "$site" || true)
}

# check_count NAME MINIMUM: empty, or a whole number of at least MINIMUM.
check_count() {
  local value=${!1}
  [[ -z $value || ($value =~ ^(0|[1-9][0-9]{0,6})$ && $value -ge $2) ]] ||
    site_error "$1" "not a whole number of at least $2"
}

# Empty, or as sbatch takes a time limit.
is_time() {
  local time='([0-9]+-)?[0-9]+(:[0-9]+){0,2}'
  [[ -z $1 || $1 =~ ^$time$ ]]
}

check_launcher() {
  read -r -a launcher_words <<<"$LONGHAUL_LAUNCHER"
  case ${launcher_words[0]-} in
    srun | mpirun | */mpirun) ;;
    *) site_error LONGHAUL_LAUNCHER 'neither mpirun nor srun' ;;
  esac
}

# Sets `site` and every LONGHAUL_ name of it, or ends with exit code 2.
load_site() {
  local name error
  site=${LONGHAUL_SITE:-$root/slurm/site.env}
  [[ -f $site && -r $site ]] ||
    usage_error "no site file $site (it says how this cluster is used). Copy slurm/site.env and fill it in."
  site=$(realpath -- "$site")
  error=$(bash -n -- "$site" 2>&1) || usage_error "$site is not bash (${error##*$'\n'}). Correct it there."
  refuse_unknown_site_names
  LONGHAUL_PARTITION='' LONGHAUL_ACCOUNT='' LONGHAUL_QOS='' LONGHAUL_CONSTRAINT='' LONGHAUL_TIME=''
  LONGHAUL_SBATCH=() LONGHAUL_RANKS_PER_NODE='' LONGHAUL_CPUS_PER_RANK='' LONGHAUL_GPUS_PER_NODE=''
  LONGHAUL_GPU_OPTION=gpus-per-node LONGHAUL_MODULES=() LONGHAUL_LAUNCHER=mpirun
  LONGHAUL_MPI_FLAGS='' LONGHAUL_CONTAINER=() LONGHAUL_CONTAINER_BIN=/usr/local/bin
  LONGHAUL_MAX_RESTARTS=50
  set +u  # a site may ask for variables that are not set
  # shellcheck source=slurm/site.env
  . "$site" || true
  set -u
  for name in LONGHAUL_RANKS_PER_NODE LONGHAUL_CPUS_PER_RANK; do check_count "$name" 1; done
  for name in LONGHAUL_GPUS_PER_NODE LONGHAUL_MAX_RESTARTS; do check_count "$name" 0; done
  is_time "$LONGHAUL_TIME" || site_error LONGHAUL_TIME 'not a time: minutes, H:MM:SS or D-HH:MM'
  check_launcher
  case $LONGHAUL_GPU_OPTION in
    gpus-per-node | gres) ;;
    *) site_error LONGHAUL_GPU_OPTION 'neither gpus-per-node nor gres' ;;
  esac
}

load_modules() {
  local file
  ((${#LONGHAUL_MODULES[@]})) || return 0
  set +u  # the module command and what it loads are not ours
  if ! declare -F module >/dev/null; then
    for file in "${LMOD_PKG:+$LMOD_PKG/init/bash}" "${MODULESHOME:+$MODULESHOME/init/bash}" \
      /etc/profile.d/lmod.sh /etc/profile.d/modules.sh; do
      # shellcheck disable=SC1090
      if [[ -n $file && -r $file ]]; then . "$file" && break; fi
    done
  fi
  declare -F module >/dev/null ||
    usage_error "$site: LONGHAUL_MODULES=(${LONGHAUL_MODULES[*]}) (this node has no module command). Empty it, or define one there."
  module load "${LONGHAUL_MODULES[@]}" ||
    usage_error "$site: module load ${LONGHAUL_MODULES[*]} failed (see above). Correct LONGHAUL_MODULES there."
  set -u
}

# What scripts/ and the programs need to know of the site, in their environment.
enter_site() {
  load_modules
  export LONGHAUL_MPI_FLAGS=${launcher_words[*]:1}${LONGHAUL_MPI_FLAGS:+ $LONGHAUL_MPI_FLAGS}
  case ${launcher_words[0]} in
    srun)
      export LONGHAUL_LAUNCHER=srun
      # Since 22.05 a step does not inherit the cores for each of its tasks.
      if [[ -n ${SLURM_CPUS_PER_TASK:-} ]]; then export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK; fi
      ;;
    *) export LONGHAUL_LAUNCHER=mpirun LONGHAUL_MPIRUN=${launcher_words[0]} ;;
  esac
  if ((${#LONGHAUL_CONTAINER[@]})); then
    have "${LONGHAUL_CONTAINER[0]}" ||
      usage_error "$site: no program ${LONGHAUL_CONTAINER[0]} (LONGHAUL_CONTAINER begins with it). Load its module, or correct it there."
    LONGHAUL_BIN=$root/slurm/container
    LONGHAUL_CONTAINER_COMMAND=$(printf '%s\n' "${LONGHAUL_CONTAINER[@]}")
    export LONGHAUL_CONTAINER_COMMAND LONGHAUL_CONTAINER_BIN
  fi
  LONGHAUL_BIN=$(realpath -m -- "${LONGHAUL_BIN:-$root/build/bin}")
  export LONGHAUL_BIN
  [[ -x $LONGHAUL_BIN/bench_pipeline ]] ||
    usage_error "no program $LONGHAUL_BIN/bench_pipeline (not built, or LONGHAUL_BIN in $site names another place). Run scripts/build."
}
