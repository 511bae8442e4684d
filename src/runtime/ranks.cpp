#include "runtime/ranks.hpp"

namespace longhaul {

Ranks::Ranks(const WatchdogOptions& options, int ranks_per_host)
    : world_{mpi::Communicator::duplicate(MPI_COMM_WORLD)},
      board_{world_, ranks_per_host},
      transport_{world_, board_},
      watchdog_{board_, options} {
  make_timers_precise();
  world_.on_wait([this](Duration waited) { watchdog_.check_wait(waited); });
}

}  // namespace longhaul
