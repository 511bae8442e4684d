#pragma once

#include <source_location>

#include <mpi.h>

namespace longhaul::comm {

/// Throws Error (run_failed) that names the call's place and MPI's own text unless `code` is
/// MPI_SUCCESS. The communicators of this module return their errors.
void check(int code, std::source_location where = std::source_location::current());

}  // namespace longhaul::comm
