#include "planner/sites/placement_tree.hpp"

#include <algorithm>
#include <limits>

#include "base/index.hpp"
#include "planner/sites/cell_scenario.hpp"
#include "planner/sites/cost.hpp"

namespace longhaul::planner {
namespace {

DatacenterId id_of(std::size_t i) { return DatacenterId{static_cast<int>(i)}; }

bool same_link(const Link* a, const Link* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->latency == b->latency && a->bandwidth == b->bandwidth && a->sharing == b->sharing &&
         a->aggregate == b->aggregate;
}

bool same_nodes(const NodeInterfaces* a, const NodeInterfaces* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return a->gpus == b->gpus && a->egress == b->egress && a->ingress == b->ingress &&
         a->internal == b->internal;
}

bool linked(const Scenario& scenario, DatacenterId a, DatacenterId b) {
  return scenario.link(a, b) != nullptr && scenario.link(b, a) != nullptr;
}

}  // namespace

PlacementTree::PlacementTree(const GpuInventory& inventory, Group group, SiteObjective objective,
                             Filling filling)
    : inventory_{inventory},
      group_{std::move(group)},
      objective_{objective},
      bounds_{inventory, group_.schedule, group_.pipelines, group_.cells},
      least_price_{std::numeric_limits<double>::infinity()},
      filling_{filling} {
  const auto count = to_size(inventory.datacenters());
  for (std::size_t d = 0; d < count; ++d) {
    stages_.push_back(inventory.stages_for(id_of(d), group_.cells * group_.pipelines));
    const auto& price = inventory.scenario().datacenters[d].price;
    if (stages_[d] > 0 && price) least_price_ = std::min(least_price_, *price);
  }
  equal_to_.resize(count);
  for (std::size_t d = 0; d < count; ++d) {
    for (std::size_t before = 0; before < d; ++before) {
      if (is_interchangeable(before, d)) equal_to_[d].push_back(before);
    }
  }
}

/// Does the time or cost of a placement stay the same when the two change places?
bool PlacementTree::is_interchangeable(std::size_t a, std::size_t b) const {
  const Scenario& scenario = inventory_.scenario();
  const Datacenter& one = scenario.datacenters[a];
  const Datacenter& two = scenario.datacenters[b];
  if (std::min(stages_[a], inventory_.stages()) != std::min(stages_[b], inventory_.stages()))
    return false;
  if (one.speed != two.speed || one.price != two.price ||
      one.egress_price.value_or(0) != two.egress_price.value_or(0))
    return false;
  const auto link = [&](std::size_t from, std::size_t to) {
    return scenario.link(id_of(from), id_of(to));
  };
  if (!same_nodes(scenario.interfaces(id_of(a)), scenario.interfaces(id_of(b)))) return false;
  if (!same_link(link(a, b), link(b, a)) || !same_link(link(a, a), link(b, b))) return false;
  for (std::size_t other = 0; other < stages_.size(); ++other) {
    if (other == a || other == b) continue;
    if (!same_link(link(a, other), link(b, other)) || !same_link(link(other, a), link(other, b)))
      return false;
  }
  return true;
}

bool PlacementTree::has_unused_equal(std::size_t datacenter, std::uint32_t used) const {
  return std::ranges::any_of(equal_to_[datacenter],
                             [&](std::size_t equal) { return (used >> equal & 1U) == 0; });
}

std::int64_t PlacementTree::completions(std::uint32_t used, int left) {
  const auto known = completions_.find({used, left});
  if (known != completions_.end()) return known->second;
  std::int64_t count = 0;
  for (std::size_t d = 0; d < stages_.size(); ++d) {
    if ((used >> d & 1U) != 0 || stages_[d] == 0) continue;
    const int most = std::min(left, stages_[d]);
    for (int stages = fewest(most); stages <= most; ++stages)
      count += stages == left ? 1 : completions(used | 1U << d, left - stages);
  }
  return completions_[{used, left}] = count;
}

double PlacementTree::score_of(std::int64_t time, const StagePlacement& placement,
                               bool with_egress) const {
  const auto nanoseconds = static_cast<double>(time);
  const double replicas = static_cast<double>(group_.cells) * group_.pipelines;
  if (objective_ == SiteObjective::time) return nanoseconds;
  if (objective_ == SiteObjective::throughput) return nanoseconds / replicas;
  // Cost of one pipeline's samples: its GPUs for so long, and its egress.
  double an_hour = 0;
  int placed = 0;
  const bool priced = inventory_.priced();
  for (const DatacenterStages& share : placement) {
    const auto& datacenter = inventory_.scenario().datacenters[index(share.datacenter)];
    an_hour += (priced ? *datacenter.price : 1) * share.stages;
    placed += share.stages;
  }
  an_hour += (priced ? least_price_ : 1) * (inventory_.stages() - placed);
  double cost = an_hour * inventory_.gpus_of_stage() * nanoseconds / 3.6e12;
  if (with_egress && priced) cost += egress_dollars_of_pipeline(inventory_, placement);
  return cost / samples_of_pipeline(inventory_);
}

double PlacementTree::score_of(const StagePlacement& placement, Duration time) const {
  const SiteLayout layout{placement, group_.cells, group_.pipelines};
  return score_of((time + all_reduce_time(inventory_, layout)).count(), placement, true);
}

/// Every objective grows with the time in proportion, from where no time is taken.
Duration PlacementTree::time_of(const StagePlacement& placement, double score) const {
  constexpr Duration kSecond = 1s;
  const double least = score_of(placement, Duration::zero());
  const double seconds = (score - least) / (score_of(placement, kSecond) - least);
  if (!(seconds < 1e9)) return Duration::max();
  return Duration{static_cast<std::int64_t>(std::max(0.0, seconds * 1e9))};
}

PlacementTree::NodeBound PlacementTree::bound_of(const Node& node,
                                                 const StagePlacement& placement) const {
  const CellBound bound = bounds_.bound(node.state);
  const std::int64_t largest = bound.largest();
  NodeBound result;
  result.bound = score_of(largest + node.state.all_reduce, placement, true);
  if (score_of(largest, placement, false) < score_) {
    result.reason = SitePrune::all_reduce;
  } else if (bound.compute == largest) {
    result.reason = SitePrune::compute;
  } else {
    result.reason = bound.wan == largest ? SitePrune::wan : SitePrune::path;
  }
  return result;
}

void PlacementTree::descend(const Node& node) {
  const int left = inventory_.stages() - node.state.stages;
  for (std::size_t d = 0; d < stages_.size(); ++d) {
    if ((node.used >> d & 1U) != 0 || stages_[d] == 0) continue;
    const int most = std::min(left, stages_[d]);
    for (int stages = most; stages >= fewest(most); --stages) descend_into(node, d, stages);
  }
}

void PlacementTree::descend_into(const Node& node, std::size_t datacenter, int stages) {
  const int left = inventory_.stages() - node.state.stages;
  Node next{node.used | 1U << datacenter, {}};
  const std::int64_t below = stages == left ? 1 : completions(next.used, left - stages);
  const auto prune = [&](SitePrune reason) { pruned_[static_cast<int>(reason)] += below; };
  const DatacenterId here = id_of(datacenter);
  if (!placement_.empty() && !linked(inventory_.scenario(), placement_.back().datacenter, here))
    return prune(SitePrune::no_link);
  if (prune_ && has_unused_equal(datacenter, node.used)) return prune(SitePrune::symmetry);
  next.state = bounds_.extended(node.state, {here, stages});
  placement_.push_back({here, stages});
  const NodeBound found = bound_of(next, placement_);
  if (prune_ && found.bound >= score_) {
    prune(found.reason);
  } else if (stages == left) {
    leaves_.push_back({placement_, found.bound, found.reason});
  } else {
    descend(next);
  }
  placement_.pop_back();
}

std::vector<PlacementTree::Leaf> PlacementTree::leaves(
    double score, bool prune, std::int64_t (&pruned)[kCountOf<SitePrune>]) {
  score_ = score;
  prune_ = prune;
  pruned_ = pruned;
  leaves_.clear();
  const NodeBound root = bound_of(Node{}, {});
  if (prune_ && root.bound >= score_) {
    pruned_[static_cast<int>(root.reason)] += count();
  } else {
    descend(Node{});
  }
  return std::move(leaves_);
}

}  // namespace longhaul::planner
