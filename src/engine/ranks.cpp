#include "engine/ranks.hpp"

#include <utility>

#include "comm/group/session.hpp"
#include "comm/registry/transports.hpp"

namespace longhaul::engine {

namespace {

/// Time beyond the deadline that making communicators may take: on many hosts, seconds.
constexpr Duration kSetUp = std::chrono::seconds{30};

}  // namespace

Ranks::Ranks(const WatchdogOptions& options, int ranks_per_host)
    : Ranks{comm::Communicator::world(), options, ranks_per_host} {}

Ranks::Ranks(comm::Communicator world, const WatchdogOptions& options, int ranks_per_host)
    : guard_{std::in_place, "the ranks to meet", options.deadline + kSetUp},
      world_{std::move(world)},
      host_ranks_{world_, ranks_per_host},
      transport_{comm::make_host_transport(world_, host_ranks_)},
      pieces_{*transport_},
      watchdog_{host_ranks_, options} {
  if (!world_.is_of_threads()) comm::set_idle_look(comm::IdleLook::return_at_once);
  make_timers_precise();
  const auto look = [this](Duration waited) { watchdog_.check_wait(waited); };
  world_.on_wait(look);
  host_ranks_.on_wait(look);
  guard_.reset();
}

Ranks::~Ranks() {
  if (!world_.is_of_threads()) comm::set_idle_look(comm::IdleLook::give_way);
}

}  // namespace longhaul::engine
