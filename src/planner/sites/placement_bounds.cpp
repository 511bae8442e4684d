#include "planner/sites/placement_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/index.hpp"
#include "planner/sites/cell_scenario.hpp"

namespace longhaul::planner {
namespace {

/// Never above what a plan rounds it to.
std::int64_t transfer(Bytes size, double bits_per_second) {
  const double time = static_cast<double>(size.count()) * 8e9 / bits_per_second;
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(time)) - 1);
}

}  // namespace

std::int64_t CellBound::largest() const { return std::max({compute, wan, path}); }

PlacementBounds::PlacementBounds(const GpuInventory& inventory, const ScheduleRequest& schedule,
                                 int pipelines, int cells)
    : inventory_{inventory}, pipelines_{pipelines}, cells_{cells} {
  const schedule::Generator* const rows = schedule.generator;  // in cells or not
  sharp_ = rows != nullptr && rows->placement == schedule::Placement::unidirectional &&
           !rows->divides_wgrad;
  split_ = rows == nullptr || rows->backward == schedule::Backward::split;
  pooled_ = schedule.shares_wan();
  fill_stages(pipelines * cells);
  fill_rest();
}

void PlacementBounds::fill_stages(int replicas) {
  const Costs& costs = inventory_.costs();
  const bool recompute = inventory_.scenario().memory.recompute;
  for (int d = 0; d < inventory_.datacenters(); ++d) {
    const double speed = inventory_.scenario().datacenters[at(d)].speed;
    const auto time = [&](Duration of) { return scaled(of, 1 / speed).count(); };
    std::vector<StageTime>& mine = stages_.emplace_back();
    for (int s = 0; s < inventory_.stages(); ++s) {
      const std::size_t i = at(s);
      StageTime stage;
      stage.forward = time(costs.forward[i]);
      const std::int64_t parts = time(costs.dgrad[i]) + time(costs.wgrad[i]);
      stage.back = time(costs.backward[i]);
      const std::int64_t whole = stage.back;
      if (split_) stage.back = std::min(stage.back, time(costs.dgrad[i]));
      // The last stage has its activations at once (Varuna): no R is counted there.
      const std::int64_t again =
          recompute && sharp_ && s + 1 < inventory_.stages() ? time(costs.recompute[i]) : 0;
      stage.work = stage.forward + stage.back + again;
      stage.all_work = stage.forward + (split_ ? std::min(whole, parts) : whole) + again;
      stage.all_reduce =
          all_reduce_inside(inventory_, DatacenterId{d}, StageId{s}, replicas).count();
      mine.push_back(stage);
    }
  }
}

/// Bounds as if every stage to come lay where it is fastest, next to the one before.
void PlacementBounds::fill_rest() {
  const std::size_t stages = at(inventory_.stages());
  const std::int64_t microbatches = inventory_.scenario().parallel.microbatches;
  rest_path_.assign(stages + 1, 0);
  rest_compute_.assign(stages + 1, 0);
  for (std::size_t s = stages; s-- > 0;) {
    StageTime fastest = stages_.front()[s];
    for (const auto& of_datacenter : stages_) {
      fastest.forward = std::min(fastest.forward, of_datacenter[s].forward);
      fastest.back = std::min(fastest.back, of_datacenter[s].back);
      fastest.work = std::min(fastest.work, of_datacenter[s].work);
      fastest.all_work = std::min(fastest.all_work, of_datacenter[s].all_work);
    }
    const std::int64_t round = sharp_ ? fastest.forward + fastest.back : 0;
    rest_path_[s] = rest_path_[s + 1] + round;
    const std::int64_t work = microbatches * (sharp_ ? fastest.work : fastest.all_work);
    rest_compute_[s] = std::max(rest_compute_[s + 1] + round, work);
  }
}

PlacementBounds::Hop PlacementBounds::hop(DatacenterId from, DatacenterId to, StageId stage) const {
  const Scenario& scenario = inventory_.scenario();
  const Link* const link = scenario.link(from, to);
  Hop hop;
  double rate = Bandwidth::unlimited().bits_per_second();
  if (link != nullptr) {
    hop.latency = link->latency.count();
    rate = link->bandwidth.bits_per_second();
    if (from != to && link->sharing == Sharing::datacenter) rate /= cells_;
  }
  const NodeInterfaces* const out = scenario.interfaces(from);
  const NodeInterfaces* const in = scenario.interfaces(to);
  if (from != to) {
    if (out != nullptr) rate = std::min(rate, out->egress.bits_per_second());
    if (in != nullptr) rate = std::min(rate, in->ingress.bits_per_second());
    if (pooled_) rate *= pipelines_;
  } else if (out != nullptr && out->gpus == 1) {
    rate = std::min(rate, out->internal.bits_per_second());
  }
  hop.transfer = transfer(inventory_.costs().message[at(stage)], rate);
  return hop;
}

std::vector<schedule::LeastHop> PlacementBounds::hops(const StagePlacement& placement) const {
  std::vector<schedule::LeastHop> hops;
  const auto cross = [&](DatacenterId from, DatacenterId to) {
    const StageId stage{hops.size()};
    const Hop out = hop(from, to, stage);
    const Hop home = hop(to, from, stage);
    hops.push_back({Duration{out.transfer}, Duration{out.latency}, Duration{home.transfer},
                    Duration{home.latency}});
  };
  for (std::size_t i = 0; i < placement.size(); ++i) {
    if (i > 0) cross(placement[i - 1].datacenter, placement[i].datacenter);
    for (int s = 1; s < placement[i].stages; ++s)
      cross(placement[i].datacenter, placement[i].datacenter);
  }
  return hops;
}

std::int64_t PlacementBounds::cheapest_exit(std::size_t from, StageId stage) const {
  std::int64_t cheapest = std::numeric_limits<std::int64_t>::max();
  const DatacenterId here{static_cast<int>(from)};
  for (int d = 0; d < inventory_.datacenters(); ++d) {
    const DatacenterId there{d};
    if (there == here || inventory_.scenario().link(here, there) == nullptr) continue;
    if (inventory_.scenario().link(there, here) == nullptr) continue;
    cheapest = std::min(cheapest, hop(here, there, stage).time() + hop(there, here, stage).time());
  }
  return cheapest == std::numeric_limits<std::int64_t>::max() ? 0 : cheapest;
}

PlacementBounds::State PlacementBounds::extended(const State& state, DatacenterStages share) const {
  State next = state;
  const std::int64_t microbatches = inventory_.scenario().parallel.microbatches;
  const auto cross = [&](DatacenterId from, DatacenterId to, StageId stage) {
    const Hop out = hop(from, to, stage);
    const Hop home = hop(to, from, stage);
    next.there += out.time();
    next.back += home.time();
    if (from == to) return;
    const std::int64_t others = microbatches * (pooled_ ? pipelines_ : 1) - 1;
    next.messages = std::max({next.messages, others * out.transfer, others * home.transfer});
  };
  if (state.stages > 0 && sharp_)
    cross(DatacenterId{static_cast<int>(state.last)}, share.datacenter, StageId{state.stages - 1});
  next.last = index(share.datacenter);
  for (int s = state.stages; s < state.stages + share.stages; ++s) {
    if (s > state.stages && sharp_) cross(share.datacenter, share.datacenter, StageId{s - 1});
    const StageTime& stage = stages_[next.last][at(s)];
    const std::int64_t until_last_gradient = next.back + microbatches * stage.work;
    const std::int64_t work = std::max(until_last_gradient, microbatches * stage.all_work);
    next.compute = std::max(next.compute, sharp_ ? next.there + work : work);
    next.all_reduce = std::max(next.all_reduce, stage.all_reduce);
    if (!sharp_) continue;
    next.there += stage.forward;
    next.back += stage.back;
  }
  next.stages += share.stages;
  return next;
}

CellBound PlacementBounds::bound(const State& state) const {
  CellBound bound;
  std::int64_t round = state.there + state.back;
  if (sharp_ && state.stages > 0 && state.stages < inventory_.stages())
    round += cheapest_exit(state.last, StageId{state.stages - 1});
  bound.path = round + rest_path_[at(state.stages)];
  const std::int64_t rest =
      state.stages < inventory_.stages() ? rest_compute_[at(state.stages)] : 0;
  bound.compute = std::max(state.compute, rest == 0 ? 0 : round + rest);
  bound.wan = state.messages > 0 ? bound.path + state.messages : 0;
  return bound;
}

}  // namespace longhaul::planner
