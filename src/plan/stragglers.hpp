#pragma once

#include "plan/plan.hpp"
#include "scenario/scenario.hpp"

namespace longhaul {

/// The plan with the block times of the run's slow devices (Run::stragglers). Orders and turns stay
/// what they are: simulated, it says what a schedule takes that absorbs stragglers by being timed
/// anew (Atlas section 4.4), and what ranks should measure. Noise is left out.
[[nodiscard]] Plan with_stragglers(Plan plan, const Run& run);

}  // namespace longhaul
