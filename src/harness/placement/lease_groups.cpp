#include <algorithm>
#include <map>
#include <numeric>

#include "harness/placement/placement.hpp"

namespace longhaul::harness {
namespace {

/// Ranks that were found to belong together, directly or through others.
class Groups {
public:
  explicit Groups(std::size_t ranks) : leader_(ranks) {
    std::iota(leader_.begin(), leader_.end(), std::size_t{0});
  }
  std::size_t leader(std::size_t rank) {
    while (leader_[rank] != rank) rank = leader_[rank] = leader_[leader_[rank]];
    return rank;
  }
  void join(std::size_t a, std::size_t b) { leader_[leader(a)] = leader(b); }

  std::vector<RankGroup> large() {
    std::map<std::size_t, RankGroup> members;
    for (std::size_t rank = 0; rank < leader_.size(); ++rank)
      members[leader(rank)].push_back(Rank{static_cast<std::int32_t>(rank)});
    std::vector<RankGroup> groups;
    for (auto& [leader, group] : members)
      if (group.size() > 1) groups.push_back(std::move(group));
    std::ranges::sort(groups, {}, [](const RankGroup& group) { return group.front(); });
    return groups;
  }

private:
  std::vector<std::size_t> leader_;
};

}  // namespace

std::vector<RankGroup> ranks_that_lease_together(const std::vector<const Plan*>& plans) {
  if (plans.empty()) return {};
  Groups groups{plans.front()->ranks.size()};
  for (const Plan* plan : plans) {
    std::vector<Rank> user(plan->resources.size(), kNone<Rank>);
    for (const Lane& lane : plan->lanes) {
      if (lane.kind != OpKind::send || lane.count == 0) continue;
      for (const ResourceId id : plan->resources_of(lane.first)) {
        Rank& other = user[index(id)];
        if (other == kNone<Rank>) other = lane.rank;
        groups.join(index(other), index(lane.rank));
      }
    }
  }
  return groups.large();
}

}  // namespace longhaul::harness
