#pragma once

#include <string>

#include "base/result.hpp"
#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// All that passes decided of an iteration, from one rank to others that know its schedule and
/// scenario: its sharding, and the work of its stages. Numbers between blanks, of this version of
/// the program alone.
[[nodiscard]] std::string to_text(const IterationPlan& plan);

/// The iteration of which to_text() speaks, op for op; `schedule` is that of the plan. Refused as
/// iteration_of() refuses.
[[nodiscard]] Result<IterationPlan> read_iteration(const std::string& text,
                                                   const Schedule& schedule,
                                                   const Scenario& scenario,
                                                   Arrangement arrangement);

}  // namespace longhaul::collective
