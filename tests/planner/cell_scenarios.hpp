#pragma once

#include <fmt/format.h>

#include "base/random.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::test {

/// Atlas figure 6: F = R = 1 slot (100 ns), B = 2, a message over the WAN 2 slots alone, no
/// latency; 2 pipelines of 6 stages in 3 datacenters, 4 microbatches.
[[nodiscard]] inline Scenario figure_6() {
  Scenario scenario = uniform_scenario(6, 4);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.memory.recompute = true;
  scenario.costs.recompute.assign(6, Duration{100});
  scenario.costs.backward.assign(6, Duration{200});
  return spread(scenario, 3, Duration::zero(), Duration{200});
}

/// Pipelines of 2 to 4 stages over several datacenters, stage by stage, one GPU a node; every
/// number drawn.
[[nodiscard]] inline Scenario random_cells(Random& random) {
  const auto stages = static_cast<int>(random.between(2, 4));
  Scenario scenario = uniform_scenario(stages, static_cast<int>(random.between(1, 5)));
  scenario.parallel.replicas = static_cast<int>(random.between(2, 5));
  scenario.parallel.cell = static_cast<int>(random.between(2, 3));
  scenario.parallel.gradient_sync = static_cast<GradientSync>(random.between(0, 2));
  scenario.memory.recompute = random.between(0, 2) == 0;
  scenario.memory.budget = 1.0 + 0.25 * static_cast<double>(random.between(0, 2));
  scenario = spread(scenario, static_cast<int>(random.between(2, stages)),
                    Duration{random.between(0, 300)}, Duration{random.between(50, 500)});
  if (random.between(0, 1) == 0) {
    for (std::size_t at = 0; at < scenario.datacenters.size(); ++at) {
      const Bandwidth rate = scenario.links.front().bandwidth;
      NodeInterfaces nodes{DatacenterId{static_cast<int>(at)}, 1, rate, rate};
      nodes.internal = Bandwidth{20 * rate.bits_per_second()};
      scenario.nodes.push_back(nodes);
    }
  }
  Costs& costs = scenario.costs;
  for (std::size_t i = 0; i < costs.forward.size(); ++i) {
    costs.forward[i] = Duration{random.between(50, 150)};
    costs.dgrad[i] = Duration{random.between(50, 150)};
    costs.wgrad[i] = Duration{random.between(20, 150)};
    costs.recompute[i] = costs.forward[i];
    costs.backward[i] = costs.dgrad[i] + costs.wgrad[i];
    costs.message[i] = Bytes{random.between(500'000, 1'500'000)};
  }
  return scenario;
}

}  // namespace longhaul::test
