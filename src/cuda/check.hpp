#pragma once

#include <source_location>

#include <cuda_runtime_api.h>

namespace longhaul::cuda {

/// Throws Error (exit code 3) with CUDA's own words unless `code` is success. Errors of work that
/// was begun earlier surface here too.
void check(cudaError_t code, std::source_location where = std::source_location::current());

/// For destructors and ends of runs: says it on standard error and goes on.
void report(cudaError_t code, const char* what) noexcept;

}  // namespace longhaul::cuda
