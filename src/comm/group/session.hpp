#pragma once

#include <source_location>
#include <string>

#include "base/units.hpp"

namespace longhaul::comm {

/// MPI from construction to destruction: one per process, made first in main. The thread that makes
/// it is the one that calls MPI.
class Session {
public:
  /// A rank that is frozen meanwhile must not keep the others forever: after `longest_start` this
  /// process says so and ends with exit code 3, and with it the run.
  Session(int& argc, char**& argv, Duration longest_start = std::chrono::seconds{40});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
};

/// A launcher (mpirun, srun) started this process: it is a rank among others.
[[nodiscard]] bool was_launched();

/// The world of this run; needs a Session.
[[nodiscard]] int processes();
/// This rank's number among all: the process's, or that of the thread where ranks are threads.
[[nodiscard]] int world_rank();
/// Called after a look at MPI that found nothing to do.
enum class IdleLook { give_way, return_at_once };
/// Open MPI that was told to share cores (mpi_yield_when_idle) gives the processor away at each
/// such look: right for calls that wait inside MPI (its start and end), wrong for ours, which sleep
/// by themselves and look when there is something; on a busy machine it costs milliseconds. Other
/// MPIs, and an Open MPI that does not let itself be told: nothing happens.
void set_idle_look(IdleLook what);

/// Ends every rank of the run with `exit_code`; does not return.
[[noreturn]] void abort_run(int exit_code);
/// "Open MPI v4.1.4, ..." and the like, on one line.
[[nodiscard]] std::string library_version();

/// Throws Error (run_failed) that names the call's place and MPI's own text unless `code` is
/// MPI_SUCCESS. The communicators of this module return their errors.
void check(int code, std::source_location where = std::source_location::current());

}  // namespace longhaul::comm
