#include "cuda/check.hpp"

#include <cstdio>

#include "base/error.hpp"
#include "base/version.hpp"

namespace longhaul::cuda {

void check(cudaError_t code, std::source_location where) {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or the next unrelated call reports it
  throw Error{fmt::format("{}: {} ({}, {}). The GPU, its driver or work given to it has "
                          "failed; nvidia-smi and dmesg may say why.",
                          cudaGetErrorName(code), cudaGetErrorString(code), source_place(where),
                          where.function_name()),
              ExitCode::run_failed};
}

void report(cudaError_t code, const char* what) noexcept {
  if (code == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  std::fprintf(stderr, "longhaul: %s: %s (%s)\n", what, cudaGetErrorName(code),
               cudaGetErrorString(code));
}

}  // namespace longhaul::cuda
