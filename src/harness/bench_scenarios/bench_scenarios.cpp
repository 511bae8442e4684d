#include "harness/bench_scenarios/bench_scenarios.hpp"

namespace longhaul::harness {

Scenario large_scenario() { return uniform_scenario(64, 1024); }

Scenario across_datacenters(int stages, int microbatches, Sharing sharing) {
  Scenario scenario =
      spread(uniform_scenario(stages, microbatches), 2, Duration{400}, Duration{50});
  for (Link& link : scenario.links) link.sharing = sharing;
  return scenario;
}

Scenario atlas_cluster(int pipelines) {
  Scenario scenario = uniform_scenario(60, 60, Duration{1000});
  scenario.costs.backward.assign(60, Duration{2000});
  scenario.memory.recompute = true;
  scenario.parallel.replicas = pipelines;
  scenario.parallel.cell = 4;
  return spread(scenario, 5, Duration{500}, Duration{4000});
}

Scenario two_datacenters(int stages) {
  Scenario scenario = spread(uniform_scenario(stages, 2 * stages, 10ms), 2, 20ms, 1ms);
  scenario.memory.budget = 2;
  return scenario;
}

Scenario cell_of_three(int stages) {
  Scenario scenario = uniform_scenario(stages, 2 * stages, 10ms);
  scenario.parallel.replicas = 3;
  scenario.parallel.gradient_sync = GradientSync::none;
  return spread(scenario, 2, 20ms, 30ms);
}

std::int64_t blocks_of(const Schedule& schedule) {
  std::int64_t blocks = 0;
  for (const auto& row : schedule.rows) blocks += static_cast<std::int64_t>(row.size());
  return blocks;
}

}  // namespace longhaul::harness
