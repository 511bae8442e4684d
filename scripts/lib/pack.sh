# What a machine without our libraries needs to run our programs. Sourced by scripts/bench-gpu.
# shellcheck shell=bash

# Every system's own, and of one release with its loader.
own_of_each_system='/(ld-linux[^/]*|libc|libm|libdl|librt|libpthread|libresolv)\.so'

# needed_by FILE...: paths of the shared libraries that they need, their needs included.
needed_by() {
  ldd "$@" 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
    grep -vE "$own_of_each_system" || true
}

# pack DIR BIN PROGRAM...
pack() {
  local to=$1 from=$2 program mpi_prefix mpi_libraries mpi_data library programs=()
  shift 2
  if ! have mpirun || ! have ompi_info; then
    die 'packing needs Open MPI (mpirun, ompi_info).'
  fi
  for program in "$@"; do
    [[ -x $from/$program ]] || die "no $from/$program. Build it first, or set LONGHAUL_BIN."
    programs+=("$from/$program")
  done
  [[ ! -e $to || -z $(ls -A -- "$to") ]] || die "'$to' is not empty."
  mpi_prefix=$(ompi_info --path prefix --parsable | cut -d : -f 3)
  mpi_libraries=$(ompi_info --path pkglibdir --parsable | cut -d : -f 3)
  mpi_data=$(ompi_info --path pkgdatadir --parsable | cut -d : -f 3)
  mkdir -p -- "$to/bin" "$to/lib" "$to/lib-base"
  to=$(cd -- "$to" && pwd -P)
  cp -- "${programs[@]}" "$to/bin"
  strip -- "$to"/bin/*
  # Open MPI looks for its parts below OPAL_PREFIX as they lay below its own prefix.
  mkdir -p -- "$to/mpi/bin" "$to/mpi${mpi_libraries#"$mpi_prefix"}" "$to/mpi${mpi_data#"$mpi_prefix"}"
  cp -L -- "$mpi_prefix/bin/mpirun" "$mpi_prefix/bin/orted" "$to/mpi/bin"
  cp -L -- "$mpi_libraries"/*.so "$to/mpi${mpi_libraries#"$mpi_prefix"}"
  cp -r -- "$mpi_data/." "$to/mpi${mpi_data#"$mpi_prefix"}"
  while IFS= read -r library; do
    case ${library##*/} in
      libstdc++.* | libgcc_s.*) cp -L -- "$library" "$to/lib-base" ;;
      *) cp -L -- "$library" "$to/lib" ;;
    esac
  done < <(needed_by "${programs[@]}" "$mpi_prefix/bin/mpirun" "$mpi_prefix/bin/orted" \
    "$mpi_libraries"/mca_pmix_ext*.so)
  write_launcher "$to"
  say "packed ${#programs[@]} programs into $to ($(du -sh -- "$to" | cut -f 1))." \
    "There: LONGHAUL_BIN=$to/bin scripts/bench-gpu"
}

write_launcher() {
  cat >"$1/run" <<'LAUNCHER'
#!/usr/bin/env bash
# Usage: run COMMAND...: with the libraries and the Open MPI that lie beside this file.
set -euo pipefail
here=$(cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")" && pwd -P)
path=$here/lib
# CUDA's own libraries are the machine's: of the toolkit, or of Python packages.
for directory in /usr/local/cuda/lib64 /usr/local/nvidia/lib64 \
  $(python3 -c 'import os, nvidia; print(*[os.path.join(p, d, "lib") for p in nvidia.__path__
    for d in sorted(os.listdir(p))])' 2>/dev/null || true); do
  if [[ -d $directory ]]; then path+=:$directory; fi
done
export LD_LIBRARY_PATH=$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# The machine's C++ library, unless it is older than ours.
for program in "$here"/bin/*; do
  if ldd "$program" 2>&1 | grep -q "version .GLIBCXX\|libstdc++.*not found\|libgcc_s.*not found"; then
    LD_LIBRARY_PATH=$here/lib-base:$LD_LIBRARY_PATH
  fi
  break
done
export OPAL_PREFIX=$here/mpi PATH=$here/mpi/bin:$PATH
# Parts of Open MPI for networks that are not here need libraries that are not here either.
export OMPI_MCA_mca_base_component_show_load_errors=0 OMPI_MCA_btl=self,vader,tcp OMPI_MCA_pml=ob1
# PMIx looks for zlib under the name of its development package, and warns without end.
export PMIX_MCA_pcompress_base_silence_warning=1
exec "$@"
LAUNCHER
  chmod +x "$1/run"
}
