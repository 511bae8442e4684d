#pragma once

#include <algorithm>

#include "base/random.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::test {

/// P 1..8, M 1..20, v 1..3, 1..4 datacenters, budgets 1..2, uneven costs and sizes, links that
/// differ by direction and are sometimes shared, node interfaces, replicas, recomputation, 1..6
/// parts.
[[nodiscard]] inline Scenario random_scenario(std::uint64_t seed) {
  Random random{seed};
  const auto draw = [&](std::int64_t low, std::int64_t high) { return random.between(low, high); };
  const int stages = static_cast<int>(draw(1, 8));
  Scenario scenario = uniform_scenario(stages, static_cast<int>(draw(1, 20)));
  scenario.parallel.chunks = static_cast<int>(draw(1, 3));
  scenario.parallel.sub_blocks = static_cast<int>(draw(1, 6));
  scenario.parallel.replicas = static_cast<int>(draw(0, 3) == 0 ? 2 : 1);
  scenario.memory.recompute = draw(0, 3) == 0;
  scenario.memory.budget = 1 + static_cast<double>(draw(0, 100)) / 100;
  Costs& costs = scenario.costs;
  for (auto* times : {&costs.forward, &costs.dgrad, &costs.wgrad, &costs.recompute}) {
    for (Duration& time : *times) time = Duration{draw(1, 500)};
  }
  for (std::size_t i = 0; i < costs.forward.size(); ++i)
    costs.backward[i] = costs.dgrad[i] + costs.wgrad[i];
  for (Bytes& size : costs.activation) size = Bytes{draw(10'000, 20'000)};
  for (Bytes& size : costs.message) size = Bytes{draw(1, 20'000)};
  const int datacenters = static_cast<int>(draw(1, std::min(stages, 4)));
  scenario = spread(scenario, datacenters, Duration{}, Duration{draw(0, 300)});
  for (Link& link : scenario.links) {
    link.latency = Duration{draw(0, 800)};
    link.sharing = draw(0, 3) == 0 ? Sharing::datacenter : Sharing::pair;
  }
  for (int d = 0; d < datacenters; ++d) {
    if (draw(0, 7) != 0) continue;
    const Bandwidth rate{static_cast<double>(draw(1, 20)) * 1e9};
    scenario.nodes.push_back({DatacenterId{d}, static_cast<int>(draw(1, 2)), rate, rate});
  }
  return scenario;
}

}  // namespace longhaul::test
