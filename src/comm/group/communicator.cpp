#include "comm/group/communicator.hpp"

#include "comm/group/thread_ranks.hpp"

namespace longhaul::comm {

Communicator Communicator::world() {
  const ThreadRank* const thread = this_thread_rank();
  return Communicator{thread == nullptr ? make_mpi_backend(MPI_COMM_WORLD)
                                        : make_thread_backend(thread->group, thread->rank)};
}

}  // namespace longhaul::comm
