#pragma once

#include <string>

namespace longhaul::mpi {

/// MPI from construction to destruction: one per process, made first in main. The thread that makes
/// it is the one that calls MPI.
class Session {
public:
  Session(int& argc, char**& argv);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

/// This process's number among all; behind a Session.
[[nodiscard]] int world_rank();
/// Ends every rank of the run with `exit_code`; does not return.
[[noreturn]] void abort_run(int exit_code);
/// "Open MPI v4.1.4, ..." and the like, on one line.
[[nodiscard]] std::string library_version();

}  // namespace longhaul::mpi
