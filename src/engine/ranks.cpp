#include "engine/ranks.hpp"

#include "comm/group/session.hpp"
#include "comm/registry/transports.hpp"

namespace longhaul::engine {

namespace {

/// Time beyond the deadline that making communicators may take: on many hosts, seconds.
constexpr Duration kSetUp = std::chrono::seconds{30};

comm::Communicator world_of(std::optional<Rank> as) {
  auto world = comm::Communicator::world();
  return as ? world.split(0, static_cast<int>(*as)) : std::move(world);
}

}  // namespace

Ranks::Ranks(const WatchdogOptions& options, int ranks_per_host, std::optional<Rank> as)
    : guard_{std::in_place, "the ranks to meet", options.deadline + kSetUp},
      world_{world_of(as)},
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
