#include <algorithm>
#include <bit>
#include <vector>

#include "base/index.hpp"
#include "sim/lane_sweep.hpp"

namespace longhaul::sim {

/// Members of a collective, of which `last` was the last to come, tell each other by dissemination:
/// in round k each tells the one 2^k ahead, once it has heard of round k - 1. A member starts when
/// it has heard of all. The exchange is over a hop after the last has started.
void LaneSweep::start_by_words(const Op& last) {
  const std::vector<OpId>& members = plan_.collectives[last.match];
  std::vector<Bound> starts;
  for (const OpId member : members)
    starts.push_back(bound_of(static_cast<std::uint32_t>(index(member))));
  for (std::size_t ahead = 1; ahead < members.size(); ahead *= 2) {
    const std::vector<Bound> before = starts;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::size_t from = (i + members.size() - ahead) % members.size();
      starts[i].raise(before[from].until + hop_, static_cast<std::uint32_t>(index(members[from])),
                      BoundKind::rendezvous);
    }
  }
  const Duration exchanged = std::ranges::max_element(starts, {}, &Bound::until)->until + hop_;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto id = static_cast<std::uint32_t>(index(members[i]));
    const Duration end =
        std::max(exchanged, starts[i].until + ring_time(members[i], starts[i].until));
    finish(id, end, end, starts[i]);
    if (lane_of(id) != index(last.lane)) work_.push_back(lane_of(id));
  }
}

}  // namespace longhaul::sim
