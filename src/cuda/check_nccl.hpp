#pragma once

#include <source_location>

#include <nccl.h>

#include "base/error.hpp"

namespace longhaul::cuda {

/// Throws Error (exit code 3) with NCCL's own words unless `code` is success or in progress (what
/// communicators that do not block say). `comm`, where there is one: whose last error is named.
inline void check(ncclResult_t code, ncclComm_t comm = nullptr,
                  std::source_location where = std::source_location::current()) {
  if (code == ncclSuccess || code == ncclInProgress) return;
  throw Error{fmt::format("NCCL: {} ({}) ({}:{}, {}). NCCL_DEBUG=INFO makes it say more.",
                          ncclGetErrorString(code), ncclGetLastError(comm), where.file_name(),
                          where.line(), where.function_name()),
              ExitCode::run_failed};
}

}  // namespace longhaul::cuda
