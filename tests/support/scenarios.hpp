#pragma once

#include "scenario/scenario.hpp"

namespace longhaul::testing {

/// Two stages, one in each of two datacenters, one microbatch; all replicas share the link.
inline Scenario replicas_on_a_shared_link(int replicas, Duration latency, Duration transfer) {
  Scenario scenario = uniform_scenario(2, 1);
  scenario.parallel.replicas = replicas;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario = spread(scenario, 2, latency, transfer);
  for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
  return scenario;
}

}  // namespace longhaul::testing
