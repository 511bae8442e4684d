#pragma once

#include <vector>

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "plan/steps/collective_steps.hpp"
#include "scenario/scenario.hpp"

namespace longhaul::plan {

/// Bytes that messages carry inside nodes, between nodes of a datacenter, and between datacenters.
struct BytesByLevel {
  Bytes node, datacenter, wan;
  friend bool operator==(const BytesByLevel&, const BytesByLevel&) = default;
};

/// A plan of one collective, and the ops that its messages became.
struct CollectivePlan {
  Plan plan;
  std::vector<OpId> sends, receives;  ///< by message of its steps
};

/// A plan in which the ranks of a scenario do one collective, and nothing else. `steps` are those
/// of `collective`. A member has a lane for each peer and stream, so that nothing but its own
/// messages before it, its data and the network hold a message up. Refused where messages must
/// cross and no link is given.
[[nodiscard]] Result<CollectivePlan> lower_collective(const Collective& collective,
                                                      const CollectiveSteps& steps,
                                                      const Scenario& scenario);

[[nodiscard]] BytesByLevel bytes_by_level(const Collective& collective,
                                          const CollectiveSteps& steps, const Scenario& scenario);

}  // namespace longhaul::plan
