#pragma once

#include <functional>
#include <memory>

#include "comm/group/thread_group.hpp"

namespace longhaul::comm {

/// This thread's place among the threads that are ranks.
struct ThreadRank {
  std::shared_ptr<ThreadGroup> group;  ///< of all of them
  int rank = 0;
};
/// Null where this thread is no such rank: then the process is one, over MPI.
[[nodiscard]] const ThreadRank* this_thread_rank();
/// This process has ranks that are threads now.
[[nodiscard]] bool has_thread_ranks();

/// Runs `body` once on each of `ranks` threads, of which the caller is the first: within it
/// mpi::Communicator::world() are these. Returns when all have ended. What one of them throws ends
/// the waits of the others, and is thrown here: the first that came.
void run_thread_ranks(int ranks, const std::function<void()>& body);

/// `rank` of `group` as a Communicator sees it.
[[nodiscard]] GroupBackend::Handle make_thread_backend(std::shared_ptr<ThreadGroup> group,
                                                       int rank);

}  // namespace longhaul::comm
