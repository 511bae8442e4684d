#pragma once

#include <optional>

#include "base/result.hpp"
#include "base/units.hpp"
#include "plan/lowering/lower.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// The makespan of a schedule by the simulator: from the start of the iteration to the last end on
/// any rank, data-parallel communication included. Throws Error where the schedule cannot run (a
/// missing link, an order of a link that deadlocks). The schedule must be valid.
[[nodiscard]] Duration makespan_of(const Schedule& schedule, const Scenario& scenario,
                                   Arrangement arrangement = Arrangement::decoupled);
/// The same, where a schedule that cannot run is an answer. With a `time_alone` collectives are one
/// op of each member: see plan::lower(). Without one they are what reported times come from
/// (planner/collectives/grain.hpp).
Result<Duration> try_makespan(const Schedule& schedule, const Scenario& scenario,
                              Arrangement arrangement = Arrangement::decoupled,
                              const plan::TimeAlone& time_alone = {});

/// The reason against a schedule without a violation that only a dry run shows: a missing link, an
/// order of a link that names what is not there or deadlocks. nullopt: it runs.
[[nodiscard]] std::optional<Refusal> why_not_runnable(const Schedule& schedule,
                                                      const Scenario& scenario,
                                                      Arrangement arrangement);

}  // namespace longhaul::planner
