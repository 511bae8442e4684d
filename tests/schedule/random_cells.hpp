#pragma once

#include <algorithm>

#include "base/random.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::test {

/// For schedules of cells: P 1..7, M 1..12, replicas 1..7, C 1..4 or as the links say, one to three
/// datacenters, uneven costs, a node for each device with its own interfaces, budgets down to a
/// single activation, with and without recomputation. Nothing but the WAN of a cell is shared.
[[nodiscard]] inline Scenario random_cells(std::uint64_t seed) {
  Random random{seed};
  const auto draw = [&](std::int64_t low, std::int64_t high) { return random.between(low, high); };
  const int stages = static_cast<int>(draw(1, 7));
  const int microbatches = static_cast<int>(draw(1, 12));
  Scenario scenario = uniform_scenario(stages, microbatches);
  Parallel& parallel = scenario.parallel;
  parallel.replicas = static_cast<int>(draw(1, 7));
  if (draw(0, 3) != 0) parallel.cell = static_cast<int>(draw(1, 4));
  const GradientSync syncs[] = {GradientSync::none, GradientSync::all_reduce, GradientSync::zero1};
  parallel.gradient_sync = syncs[draw(0, 2)];
  Costs& costs = scenario.costs;
  for (auto* times : {&costs.forward, &costs.backward, &costs.recompute}) {
    for (Duration& time : *times) time = Duration{draw(1, 500)};
  }
  for (Bytes& size : costs.activation) size = Bytes{draw(10'000, 20'000)};
  for (Bytes& size : costs.message) size = Bytes{draw(1, 20'000)};
  scenario.memory.recompute = draw(0, 1) == 0;
  const double least = 1.0 / std::min(stages, microbatches);
  scenario.memory.budget = std::max(static_cast<double>(draw(1, 150)) / 100, least + 1e-6);
  const int datacenters = static_cast<int>(draw(1, std::min(stages, 3)));
  scenario = spread(scenario, datacenters, Duration{}, Duration{draw(0, 1500)});
  for (Link& link : scenario.links) link.latency = Duration{draw(0, 800)};
  for (int d = 0; d < datacenters; ++d) {
    if (draw(0, 1) != 0) continue;
    const auto rate = [&] { return Bandwidth{static_cast<double>(draw(10, 200)) * 1e9}; };
    scenario.nodes.push_back({DatacenterId{d}, 1, rate(), rate(), rate()});
  }
  return scenario;
}

/// Do messages inside a datacenter take time? Then pieces that are scattered and gathered meet
/// other messages there, which generators leave out of account.
[[nodiscard]] inline bool is_slow_inside(const Scenario& scenario) {
  return std::ranges::any_of(
      scenario.nodes, [](const NodeInterfaces& nodes) { return !nodes.internal.is_unlimited(); });
}

/// Does one node send both activations and gradients over the WAN, so that turns of two pairs of
/// devices meet on its interface? Who is ready first goes first there.
[[nodiscard]] inline bool shares_an_interface(const Scenario& scenario) {
  const auto crosses = [&](DeviceId from, DeviceId to) {
    return scenario.datacenter_of(scenario.rank(ReplicaId{0}, from)) !=
           scenario.datacenter_of(scenario.rank(ReplicaId{0}, to));
  };
  for (int d = 1; d + 1 < scenario.parallel.stages; ++d) {
    const DeviceId device{d};
    const DatacenterId here = scenario.datacenter_of(scenario.rank(ReplicaId{0}, device));
    const bool between = crosses(previous(device), device) && crosses(device, next(device));
    if (between && scenario.interfaces(here) != nullptr) return true;
  }
  return false;
}

}  // namespace longhaul::test
