#include "runtime/ranks.hpp"

#include "runtime/transport/mpi/session.hpp"

namespace longhaul {

Ranks::Ranks(const WatchdogOptions& options, int ranks_per_host)
    : world_{mpi::Communicator::duplicate(MPI_COMM_WORLD)},
      board_{world_, ranks_per_host},
      transport_{world_, board_},
      watchdog_{board_, options} {
  mpi::set_idle_look(mpi::IdleLook::return_at_once);
  make_timers_precise();
  world_.on_wait([this](Duration waited) { watchdog_.check_wait(waited); });
}

Ranks::~Ranks() { mpi::set_idle_look(mpi::IdleLook::give_way); }

}  // namespace longhaul
