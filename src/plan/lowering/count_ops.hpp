#pragma once

#include <cstddef>

#include "plan/steps/collective.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// How many ops lower() makes of the schedule, with its collectives as messages; without making
/// them. The schedule must be valid.
[[nodiscard]] std::size_t count_ops(const Schedule& schedule, const Scenario& scenario);

/// How many messages steps_of() makes of a collective of training, a flat ring.
[[nodiscard]] std::size_t count_messages_of_ring(const Collective& ring);

}  // namespace longhaul::plan
