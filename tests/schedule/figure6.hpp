#pragma once

#include "scenario/scenario.hpp"

namespace longhaul::test {

/// A slot of figure 6's timelines.
constexpr Duration kSlot{1000};

/// Atlas' figure 6: six stages, two in each of three datacenters, four microbatches, C pipelines (2
/// in the figure); F = R = 1 slot, B = 2, a message takes C slots on one node's share of the WAN,
/// so 1 on all of them.
[[nodiscard]] inline Scenario figure6(int pipelines = 2, Duration latency = {}) {
  Scenario scenario = uniform_scenario(6, 4, kSlot);
  scenario.costs.backward.assign(6, 2 * kSlot);
  scenario.memory.recompute = true;
  scenario.parallel.replicas = pipelines;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.costs.message.assign(6, Bytes{12'000});
  return spread(scenario, 3, latency, pipelines * kSlot);
}

/// Section 6.3 in slots: 60 stages in five datacenters, 60 microbatches, one cell of C pipelines, a
/// message takes C forwards on one node; F = R = 1, B = 2.
[[nodiscard]] inline Scenario section63(int pipelines) {
  Scenario scenario = uniform_scenario(60, 60, kSlot);
  scenario.costs.backward.assign(60, 2 * kSlot);
  scenario.memory.recompute = true;
  scenario.parallel.replicas = pipelines;
  scenario.parallel.cell = pipelines;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.costs.message.assign(60, Bytes{12'000});
  return spread(scenario, 5, Duration::zero(), pipelines * kSlot);
}

}  // namespace longhaul::test
