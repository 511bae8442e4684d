#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/placement.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// A schedule that fits the budget, with what the simulator says of it.
struct Candidate {
  Schedule schedule;
  Duration makespan{};
};

/// A schedule that `best` may not take, and why: over its budget, or not defined.
struct RejectedCandidate {
  std::string schedule;
  std::string reason;
};

struct Candidates {
  std::vector<Candidate> fitting;  ///< by makespan, then in the order of the registry
  std::vector<RejectedCandidate> rejected;
  std::vector<Schedule> runnable;  ///< of the rejected ones, decoupled and with memory enough
};

/// Every static and dynamic schedule of the registry that lies on one of `placements` (empty: any),
/// simulated; those that share the WAN in cells are rejected. Deterministic.
[[nodiscard]] Candidates find_candidates(const Scenario& scenario, Arrangement arrangement,
                                         const std::vector<Placement>& placements = {});

}  // namespace longhaul
