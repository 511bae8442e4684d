#pragma once

#include <source_location>

#include <cublasLt.h>

#include "base/error.hpp"
#include "base/version.hpp"

namespace longhaul::cuda {

/// As check() for CUDA itself.
inline void check(cublasStatus_t code,
                  std::source_location where = std::source_location::current()) {
  if (code == CUBLAS_STATUS_SUCCESS) return;
  throw Error{
      fmt::format("{}: {} ({}, {}). cuBLASLt has refused or failed.", cublasLtGetStatusName(code),
                  cublasLtGetStatusString(code), source_place(where), where.function_name()),
      ExitCode::run_failed};
}

}  // namespace longhaul::cuda
