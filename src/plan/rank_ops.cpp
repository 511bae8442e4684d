#include "plan/rank_ops.hpp"

#include <algorithm>

namespace longhaul::plan {

OpRange ops_of_rank(const Plan& plan, Rank rank) {
  std::size_t first = plan.ops.size();
  std::size_t last = 0;
  for (const Lane& lane : plan.lanes) {
    if (lane.rank != rank || lane.count == 0) continue;
    first = std::min(first, index(lane.first));
    last = std::max(last, index(lane.first) + lane.count);
  }
  if (first >= last) return {};
  return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last - first)};
}

}  // namespace longhaul::plan
