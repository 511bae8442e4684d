#pragma once

#include <span>
#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::plan {

/// Adds the rows of one iteration to `timeline` (its name tables are extended as needed), for the
/// ops of all ranks or of one. Shared by sim and runtime, so that rows join by op id.
void append_rows(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration);
void append_rows(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration,
                 Rank only);

/// Factor on the duration of a block in one iteration: seeded noise (normal, cut at 0.1) times the
/// device's straggler factor. 1 where the scenario gives neither.
[[nodiscard]] double block_time_factor(const Run& run, DeviceId device, OpId op, int iteration);

/// The plan with the block times of the run's slow devices (Run::stragglers). Orders and turns stay
/// what they are: simulated, it says what a schedule takes that absorbs stragglers by being timed
/// anew (Atlas section 4.4), and what ranks should measure. Noise is left out.
[[nodiscard]] Plan with_stragglers(Plan plan, const Run& run);

/// How much one resource was used in an iteration.
struct ResourceUse {
  std::string name;
  ResourceKind kind = ResourceKind::device;
  Duration busy{};        ///< sum of all holds; over capacity * makespan it is the occupancy
  std::size_t holds = 0;  ///< ops that held it, those that took no time included
};

/// The occupancy of every resource of the plan, in the plan's order.
[[nodiscard]] std::vector<ResourceUse> occupancy(const Plan& plan, const OpTimes& times);

}  // namespace longhaul::plan
