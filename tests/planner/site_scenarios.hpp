#pragma once

#include <vector>

#include "base/random.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::test {

/// P stages that no datacenter holds yet, C pipelines a cell; one GPU a node, every pair linked
/// equal, F = D = W = 1 ms. A message takes 1 ms at 8.39 Gbps, inside a datacenter nothing.
inline Scenario sites_scenario(int stages, int microbatches, const std::vector<int>& gpus,
                               Duration latency, Bandwidth rate, int pipelines) {
  Scenario scenario = uniform_scenario(stages, microbatches, 1ms);
  scenario.placement.clear();
  scenario.datacenters.clear();
  scenario.parallel.cell = pipelines;
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  const int count = static_cast<int>(gpus.size());
  for (int d = 0; d < count; ++d) {
    Datacenter datacenter;
    datacenter.name = std::string{"dc"} + static_cast<char>('a' + d);
    datacenter.gpus = gpus[static_cast<std::size_t>(d)];
    scenario.datacenters.push_back(datacenter);
    for (int other = 0; other < count; ++other) {
      if (other == d) continue;
      Link link;
      link.from = DatacenterId{d};
      link.to = DatacenterId{other};
      link.latency = latency;
      link.bandwidth = rate;
      scenario.links.push_back(link);
    }
    NodeInterfaces nodes;
    nodes.datacenter = DatacenterId{d};
    nodes.internal = Bandwidth{100e9};
    scenario.nodes.push_back(nodes);
  }
  return scenario;
}

/// Different datacenters and links, as the seed has it; C is 1 to 3.
inline Scenario random_sites(std::uint64_t seed, int datacenters) {
  Random random{seed};
  std::vector<int> gpus;
  for (int d = 0; d < datacenters; ++d) gpus.push_back(static_cast<int>(random.between(1, 16)));
  const int stages = static_cast<int>(random.between(2, 6));
  Scenario scenario = sites_scenario(stages, static_cast<int>(random.between(2, 6)), gpus, 0ms,
                                     Bandwidth{}, static_cast<int>(random.between(1, 3)));
  scenario.datacenters[0].gpus = 18 + gpus[0];
  for (Link& link : scenario.links) {
    link.latency = random.between(0, 6) * 500us;
    link.bandwidth = Bandwidth{static_cast<double>(random.between(1, 12)) * 1e9};
  }
  const bool different = random.between(0, 1) == 1;
  for (Datacenter& datacenter : scenario.datacenters) {
    if (different) datacenter.speed = 0.5 * static_cast<double>(random.between(1, 3));
    datacenter.price = 0.5 * static_cast<double>(random.between(1, 8));
    datacenter.egress_price = 0.01 * static_cast<double>(random.between(0, 9));
  }
  for (NodeInterfaces& nodes : scenario.nodes)
    nodes.egress = nodes.ingress = Bandwidth{static_cast<double>(random.between(2, 10)) * 1e9};
  if (random.between(0, 1) == 1) {
    for (auto* times : {&scenario.costs.forward, &scenario.costs.backward, &scenario.costs.dgrad,
                        &scenario.costs.wgrad})
      for (Duration& time : *times) time = random.between(500, 2500) * 1us;
  }
  scenario.memory.recompute = random.between(0, 1) == 1;
  return scenario;
}

}  // namespace longhaul::test
