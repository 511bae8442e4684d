#include "engine/links/lease_homes.hpp"

#include <algorithm>
#include <numeric>

namespace longhaul::engine {
namespace {

/// Resources that are kept together, and the ranks whose sends hold any of them.
class KeptTogether {
public:
  KeptTogether(const Plan& plan, const std::vector<Rank>& host_of)
      : plan_{plan}, leader_(plan.resources.size()), users_(plan.resources.size()) {
    std::iota(leader_.begin(), leader_.end(), std::size_t{0});
    for_each_send_lane([&](const Lane& lane) {
      const auto held = plan_.resources_of(lane.first);
      for (const ResourceId id : held) leader_[leader(index(id))] = leader(index(held.front()));
    });
    for_each_send_lane([&](const Lane& lane) {
      const auto held = plan_.resources_of(lane.first);
      if (!held.empty()) users_[leader(index(held.front()))].add(lane.rank, host_of);
    });
  }

  struct Users {
    Rank lowest = kNone<Rank>;
    Rank host{};  ///< of the first that was added
    bool several_ranks = false, several_hosts = false;

    void add(Rank rank, const std::vector<Rank>& host_of) {
      if (lowest == kNone<Rank>) {
        lowest = rank;
        host = host_of[index(rank)];
        return;
      }
      several_ranks = several_ranks || rank != lowest;
      several_hosts = several_hosts || host_of[index(rank)] != host;
      lowest = std::min(lowest, rank);
    }
  };
  [[nodiscard]] const Users& users_of(ResourceId id) { return users_[leader(index(id))]; }

private:
  template <typename Visit>
  void for_each_send_lane(Visit&& visit) const {
    for (const Lane& lane : plan_.lanes)
      if (lane.kind == OpKind::send && lane.count > 0) visit(lane);
  }
  std::size_t leader(std::size_t at) {
    while (leader_[at] != at) at = leader_[at] = leader_[leader_[at]];
    return at;
  }

  const Plan& plan_;
  std::vector<std::size_t> leader_;  ///< index: resource
  std::vector<Users> users_;         ///< index: resource; of the leader
};

}  // namespace

LeaseHomes find_lease_homes(const Plan& plan, const std::vector<Rank>& host_of) {
  KeptTogether kept{plan, host_of};
  LeaseHomes homes;
  for (std::size_t set = 0; set + 1 < plan.set_begin.size(); ++set) {
    const bool is_empty = plan.set_begin[set] == plan.set_begin[set + 1];
    const KeptTogether::Users users =
        is_empty ? KeptTogether::Users{} : kept.users_of(plan.set_items[plan.set_begin[set]]);
    homes.shared.push_back(users.several_ranks);
    homes.home.push_back(users.several_hosts ? users.lowest : kNone<Rank>);
  }
  return homes;
}

}  // namespace longhaul::engine
