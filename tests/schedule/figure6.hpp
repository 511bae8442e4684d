#pragma once

#include "scenario/scenario.hpp"

namespace longhaul::test {

/// A slot of figure 6's timelines.
constexpr Duration kSlot{1000};

/// Atlas' figure 6: six stages, two in each of three datacenters, four microbatches, two pipelines;
/// F = R = 1 slot, B = 2, a message takes 2 on one node's share of the WAN, so 1 on two nodes'.
[[nodiscard]] inline Scenario figure6() {
  Scenario scenario = uniform_scenario(6, 4, kSlot);
  scenario.costs.backward.assign(6, 2 * kSlot);
  scenario.memory.recompute = true;
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.costs.message.assign(6, Bytes{10'000});
  return spread(scenario, 3, Duration::zero(), 2 * kSlot);
}

}  // namespace longhaul::test
