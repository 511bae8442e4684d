# What the build needs, and how to tell whether it is there. Sourced by scripts/setup.
# Probed by what works, not by dpkg, so that a cluster's modules count as well.
# shellcheck shell=bash disable=SC2034

debian_packages=(
  build-essential cmake ninja-build pkg-config git
  libopenmpi-dev openmpi-bin libhwloc-dev hwloc libhdf5-dev hdf5-tools libopenblas-dev
  libssl-dev libcli11-dev libtomlplusplus-dev libfmt-dev nlohmann-json3-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  python3 python3-venv python3-dev pybind11-dev clang-format
)
# For tests/slurm, in CI alone: who builds Longhaul need not have Slurm's daemons.
debian_slurm_packages=(slurmctld slurmd slurm-client munge iproute2)
debian_python_packages=(python3-numpy python3-h5py python3-matplotlib python3-pandas python3-tomli)

# header | what it belongs to | Debian package | Spack package
library_headers='
mpi.h|MPI (mpicxx)|libopenmpi-dev|openmpi
hwloc.h|hwloc|libhwloc-dev|hwloc
hdf5.h|HDF5|libhdf5-dev|hdf5
cblas.h|OpenBLAS|libopenblas-dev|openblas
openssl/evp.h|OpenSSL (libcrypto)|libssl-dev|openssl
CLI/CLI.hpp|CLI11|libcli11-dev|cli11
toml++/toml.h|toml++|libtomlplusplus-dev|tomlplusplus
fmt/core.h|{fmt}|libfmt-dev|fmt
nlohmann/json.hpp|nlohmann json|nlohmann-json3-dev|nlohmann-json
gtest/gtest.h|GoogleTest|libgtest-dev|googletest
gmock/gmock.h|GoogleMock|libgmock-dev|googletest
benchmark/benchmark.h|Google Benchmark|libbenchmark-dev|benchmark
'

missing_names=()
missing_debian=()
missing_spack=()

lacks() {
  missing_names+=("$1")
  missing_debian+=("$2")
  missing_spack+=("$3")
}

# Directories that hold headers without the compiler knowing: pkg-config's, MPI's, a module's.
include_flags() {
  local directory prefix
  if have pkg-config; then
    for prefix in hdf5 hwloc; do pkg-config --cflags-only-I "$prefix" 2>/dev/null || true; done
  fi
  if have mpicxx; then mpicxx --showme:compile 2>/dev/null || true; fi
  for directory in /usr/include/hdf5/serial "${HDF5_ROOT:+$HDF5_ROOT/include}" \
    "${HDF5_DIR:+$HDF5_DIR/include}"; do
    if [[ -d $directory ]]; then printf -- '-I%s\n' "$directory"; fi
  done
  tr ';' ':' <<<"${CMAKE_PREFIX_PATH:-}" | tr ':' '\n' | while IFS= read -r prefix; do
    if [[ -n $prefix && -d $prefix/include ]]; then printf -- '-I%s\n' "$prefix/include"; fi
  done
}

# One run of the preprocessor asks for every header at once.
probe_libraries() {
  local compiler=$1 header name debian spack flags source='' absent=''
  while IFS='|' read -r header name debian spack; do
    [[ -n $header ]] || continue
    source+="#if !__has_include(<$header>)"$'\n'"absent $header"$'\n'"#endif"$'\n'
  done <<<"$library_headers"
  mapfile -t flags < <(include_flags | tr ' ' '\n' | grep '^-I' || true)
  absent=$("$compiler" -std=c++20 ${flags[@]+"${flags[@]}"} -E -P -x c++ - <<<"$source" 2>/dev/null)
  while IFS='|' read -r header name debian spack; do
    [[ -n $header ]] || continue
    if grep -qxF "absent $header" <<<"$absent"; then lacks "$name" "$debian" "$spack"; fi
  done <<<"$library_headers"
}

compiles_cxx20() {
  "$1" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null <<'CODE'
#include <compare>
#include <concepts>
#include <source_location>
#include <span>
CODE
}

# Fills missing_*; empty afterwards means that everything is there.
probe_toolchain() {
  local compiler version
  missing_names=() missing_debian=() missing_spack=()
  compiler=${CXX:-c++}
  if ! have "${compiler%% *}" || ! compiles_cxx20 "${compiler%% *}"; then
    lacks 'a C++20 compiler (g++ 11 or clang 14, or newer)' build-essential gcc
    compiler=''
  fi
  version=$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p' || true)
  if ! printf '3.22\n%s\n' "${version:-0}" | sort -V -C; then
    lacks 'cmake 3.22 or newer' cmake cmake
  fi
  have ninja || lacks ninja ninja-build ninja
  if ! have mpirun && ! have srun; then lacks 'mpirun or srun' openmpi-bin openmpi; fi
  have h5dump || lacks h5dump hdf5-tools hdf5
  [[ -n $(find_python) ]] || lacks 'python 3.10 or newer with venv and pip' python3-venv python
  if [[ -n $compiler ]]; then
    probe_libraries "${compiler%% *}"
  else
    lacks 'the libraries (looked for once there is a compiler)' \
      "$(cut -s -d '|' -f 3 <<<"$library_headers")" "$(cut -s -d '|' -f 4 <<<"$library_headers")"
  fi
  ((${#missing_names[@]} == 0))
}

usable_python() {
  have "$1" && "$1" -c '
import sys, venv, ensurepip
sys.exit(not (3, 10) <= sys.version_info < tuple(map(int, sys.argv[1].split("."))))' "$2" 2>/dev/null
}

# An interpreter the pinned packages have wheels for, else any that is new enough.
find_python() {
  local newest candidate
  for newest in 3.14 4.0; do
    for candidate in ${LONGHAUL_PYTHON:+"$LONGHAUL_PYTHON"} python3 python3.13 python3.12 \
      python3.11 python3.10 /usr/bin/python3; do
      if usable_python "$candidate" "$newest"; then
        command -v -- "$candidate"
        return
      fi
    done
  done
}

name_missing() {
  local unique
  say "missing: $(printf '%s, ' "${missing_names[@]}" | sed 's/, $//')."
  if have apt-get; then
    mapfile -t unique < <(printf '%s\n' "${missing_debian[@]}" | sort -u)
    say "Install with: sudo apt-get install -y ${unique[*]}"
  else
    mapfile -t unique < <(printf '%s\n' "${missing_spack[@]}" | sort -u)
    say "Load the modules that provide them, or: spack install ${unique[*]}"
  fi
}

may_install() {
  [[ -z ${LONGHAUL_NO_INSTALL:-} ]] && have apt-get &&
    { [[ $(id -u) -eq 0 ]] || { have sudo && sudo -n true 2>/dev/null; }; }
}

as_root() { if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo -n "$@"; fi; }

apt_install() {
  local options=(-y -qq --no-install-recommends -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0)
  local package log
  log=$(mktemp)
  as_root apt-get update -qq >"$log" 2>&1 || say "apt-get update failed: $(tail -n 1 "$log")"
  if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install "${options[@]}" "$@" \
    >"$log" 2>&1 </dev/null; then
    say "apt-get install failed ($(grep -m 1 '^E:' "$log" || tail -n 1 "$log")); one by one:"
    for package in "$@"; do  # a release that lacks one package still gets the others
      as_root env DEBIAN_FRONTEND=noninteractive apt-get install "${options[@]}" "$package" \
        >"$log" 2>&1 </dev/null || say "  $package: $(grep -m 1 '^E:' "$log" || tail -n 1 "$log")"
    done
  fi
  rm -f -- "$log"
}

# The clang that the preset asan is built with, so that tests and fuzzers share its objects.
fuzzes() {
  local out
  out=$(mktemp)
  "$1" -std=c++20 -fsanitize=fuzzer,address,undefined -x c++ -o "$out" - 2>/dev/null <<'CODE' || {
#include <cstddef>
#include <cstdint>
#include <source_location>
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) {
  return std::source_location::current().line() == 0;
}
CODE
    rm -f -- "$out"
    return 1
  }
  rm -f -- "$out"
}

find_fuzzing_compiler() {
  local candidate
  for candidate in clang++-16 clang++-19 clang++-18 clang++-17 clang++-15 clang++; do
    if have "$candidate" && fuzzes "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  return 1
}

# Installs one where it may, and what tells its sanitizers the names of functions (llvm-symbolizer,
# which tests/sanitizers/leaks.txt needs). Fails where there is none afterwards.
install_fuzzing_compiler() {
  find_fuzzing_compiler >/dev/null && return
  if may_install; then apt_install clang-16 libclang-rt-16-dev llvm-16; fi
  find_fuzzing_compiler >/dev/null
}
