#pragma once

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

/// A plan in which the ranks of a scenario do one collective (Plan::stepped.front()), and nothing
/// else: see StepLowering. Refused where messages must cross and no link is given. `collective`
/// must have steps.
[[nodiscard]] Result<Plan> lower_collective(const Collective& collective, const Scenario& scenario);

[[nodiscard]] BytesByLevel bytes_by_level(const Collective& collective,
                                          const CollectiveSteps& steps, const Scenario& scenario);

}  // namespace longhaul::plan
