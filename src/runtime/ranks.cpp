#include "runtime/ranks.hpp"

namespace longhaul {

Ranks::Ranks(const WatchdogOptions& options)
    : world_{mpi::Communicator::duplicate(MPI_COMM_WORLD)},
      board_{world_},
      transport_{world_, board_},
      watchdog_{board_, options} {
  make_timers_precise();
  world_.on_wait([this](Duration waited) { watchdog_.check_wait(waited); });
}

}  // namespace longhaul
