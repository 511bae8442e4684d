#pragma once

#include "scenario/scenario.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

/// The schedule that generate() hands to a generator: everything but the blocks. Refused where
/// there would be too many to hold.
Result<Schedule> empty_schedule(const Generator& generator, const Scenario& scenario);

}  // namespace longhaul::schedule
