#include "collective/folding/rank_symmetry.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "collective/iteration/lower_iteration.hpp"
#include "schedule/network_routes.hpp"

namespace longhaul::collective {
namespace {

/// How far each kind of place moves at a time: replicas (0: not as a whole), copies of the weights,
/// shards, tensor ranks.
struct Shifts {
  int replicas = 0, copies = 1, shards = 1, tensor = 1;
};

/// Each divides `count`, ascending.
std::vector<int> divisors(int count) {
  std::vector<int> found;
  for (int d = 1; d <= count; ++d)
    if (count % d == 0) found.push_back(d);
  return found;
}

/// Groups that a communication goes among.
class Circles {
public:
  explicit Circles(std::vector<std::vector<Rank>> groups) : groups_{std::move(groups)} {
    int group = 0;
    for (const std::vector<Rank>& members : groups_) {
      for (std::size_t i = 0; i < members.size(); ++i) {
        if (index(members[i]) >= at_.size()) at_.resize(index(members[i]) + 1);
        at_[index(members[i])] = {group, static_cast<int>(i)};
      }
      ++group;
    }
  }

  /// Does each group come to a group, turned by some places?
  [[nodiscard]] bool kept(const std::vector<Rank>& image) const {
    return std::ranges::all_of(groups_, [&](const std::vector<Rank>& members) {
      const int size = static_cast<int>(members.size());
      const Rank first = image[index(members.front())];
      if (index(first) >= at_.size()) return false;
      const Place target = at_[index(first)];
      if (groups_[at(target.group)].size() != members.size()) return false;
      for (int i = 0; i < size; ++i) {
        const Rank to = image[index(members[at(i)])];
        if (groups_[at(target.group)][at((target.place + i) % size)] != to) return false;
      }
      return true;
    });
  }

private:
  struct Place {
    int group = 0, place = 0;
  };
  std::vector<std::vector<Rank>> groups_;
  std::vector<Place> at_;  ///< by rank
};

class SymmetrySearch {
public:
  explicit SymmetrySearch(const IterationPlan& plan)
      : scenario_{*plan.scenario}, parallel_{scenario_.parallel} {
    const schedule::NetworkRoutes routes{scenario_};
    std::map<std::pair<DatacenterId, int>, int> nodes;
    for (const Rank rank : ids<Rank>(scenario_.training_ranks())) {
      places_.push_back(scenario_.place_of(rank));
      const std::pair node{scenario_.datacenter_of(rank), routes.node_of(rank)};
      nodes_.push_back(nodes.try_emplace(node, static_cast<int>(nodes.size())).first->second);
    }
    several_nodes_ = nodes.size() > 1;
    for (const DeviceId stage : plan.stages.ids()) {
      std::set<Members> used;
      for (const Communication& each : plan.stages[stage].communications) used.insert(each.members);
      for (const Members members : used)
        circles_.emplace_back(groups_of(scenario_, stage, members));
      whole_ = whole_ || used.contains(Members::replicas);
    }
  }

  /// All images, that which moves nothing first.
  std::vector<std::vector<Rank>> run() {
    std::vector<Shifts> all;
    for (const int tensor : divisors(parallel_.tensor)) {
      if (whole_) {
        for (const int replicas : divisors(parallel_.replicas))
          all.push_back({.replicas = replicas, .tensor = tensor});
        continue;
      }
      for (const int copies : divisors(parallel_.replicas / parallel_.shard))
        for (const int shards : divisors(parallel_.shard))
          all.push_back({.copies = copies, .shards = shards, .tensor = tensor});
    }
    std::ranges::stable_sort(all, {}, [&](const Shifts& each) { return -count(each); });
    for (const Shifts& each : all) {
      std::vector<std::vector<Rank>> images = images_of(each);
      if (!images.empty()) return images;
    }
    return {};  // not reached: what moves nothing holds
  }

  [[nodiscard]] int node_of(Rank rank) const { return nodes_[index(rank)]; }

private:
  [[nodiscard]] int count(const Shifts& shifts) const {
    const int of_replicas = shifts.replicas > 0
                                ? parallel_.replicas / shifts.replicas
                                : parallel_.replicas / (shifts.copies * shifts.shards);
    return of_replicas * (parallel_.tensor / shifts.tensor);
  }

  /// Empty where one does not keep the iteration the same.
  [[nodiscard]] std::vector<std::vector<Rank>> images_of(const Shifts& shifts) const {
    const int shard = shifts.replicas > 0 ? 1 : parallel_.shard;
    const int copies = parallel_.replicas / shard;
    const int by_copies = shifts.replicas > 0 ? shifts.replicas : shifts.copies;
    std::vector<std::vector<Rank>> images;
    for (int c = 0; c < copies; c += by_copies)
      for (int s = 0; s < shard; s += shifts.shards)
        for (int t = 0; t < parallel_.tensor; t += shifts.tensor) {
          std::vector<Rank>& image = images.emplace_back();
          for (const RankPlace& place : places_) {
            const int replica = number(place.replica);
            const int moved =
                (replica / shard + c) % copies * shard + (replica % shard + s) % shard;
            image.push_back(scenario_.rank(ReplicaId{moved}, place.stage,
                                           (place.tensor + t) % parallel_.tensor));
          }
          if (images.size() > 1 && !keeps(image)) return {};
        }
    return images;
  }

  [[nodiscard]] bool keeps(const std::vector<Rank>& image) const {
    return keeps_network(image) && std::ranges::all_of(circles_, [&](const Circles& circles) {
             return circles.kept(image);
           });
  }

  [[nodiscard]] bool keeps_network(const std::vector<Rank>& image) const {
    std::vector<int> node(nodes_.size(), -1);
    for (std::size_t r = 0; r < image.size(); ++r) {
      const Rank to = image[r];
      if (scenario_.datacenter_of(to) != scenario_.datacenter_of(Rank{static_cast<int>(r)}))
        return false;
      if (several_nodes_ && node_of(to) == nodes_[r]) return false;
      int& known = node[at(nodes_[r])];
      if (known >= 0 && known != node_of(to)) return false;
      known = node_of(to);
    }
    return true;
  }

  const Scenario& scenario_;
  const Parallel& parallel_;
  std::vector<RankPlace> places_;
  std::vector<int> nodes_;  ///< by rank, of all datacenters
  bool several_nodes_ = false;
  bool whole_ = false;            ///< all replicas are in one group
  std::vector<Circles> circles_;  ///< of each stage and Members
};

}  // namespace

RankSymmetry RankSymmetry::of(const IterationPlan& plan) {
  SymmetrySearch search{plan};
  RankSymmetry made;
  made.images_ = search.run();
  const std::size_t ranks = made.images_.front().size();
  made.to_first_.resize(ranks);
  made.node_to_first_.resize(ranks);
  for (const Rank rank : ids<Rank>(static_cast<int>(ranks))) {
    int& best = made.to_first_[index(rank)];
    int& of_node = made.node_to_first_[index(rank)];
    for (int which = 1; which < made.count(); ++which) {
      const Rank to = made.image(which, rank);
      if (to < made.image(best, rank)) best = which;
      if (search.node_of(to) < search.node_of(made.image(of_node, rank))) of_node = which;
    }
  }
  return made;
}

const RankSymmetry& KnownSymmetries::of(const IterationPlan& plan) {
  Key key{{plan.scenario->parallel.replicas, plan.scenario->parallel.shard}, {}};
  for (const StageWork& work : plan.stages) {
    std::set<Members>& used = key.second.emplace_back();
    for (const Communication& each : work.communications) used.insert(each.members);
  }
  const auto known = known_.find(key);
  if (known != known_.end()) return known->second;
  return known_.emplace(std::move(key), RankSymmetry::of(plan)).first->second;
}

}  // namespace longhaul::collective
