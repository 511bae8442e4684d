#pragma once

#include "base/random.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::testing {

/// Stages or replicas over up to three datacenters, up to 12 ranks: links of a pair or of a
/// datacenter, some with an aggregate rate, interfaces of nodes, collectives of all kinds. Times
/// are few and short, so that much begins and ends in the same instants; some are 0.
[[nodiscard]] Scenario random_scenario(Random& random);

/// Up to two ranks a stage in a drawn order, sharded weights, replicas of other costs and counts of
/// microbatches. No DP-cells afterwards.
void add_rank_layout(Scenario& scenario, Random& random);

/// Traces, outages, jitter and losses for its links.
void add_weather(Scenario& scenario, Random& random);

}  // namespace longhaul::testing
