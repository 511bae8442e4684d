#pragma once

#include <vector>

#include "base/result.hpp"
#include "plan/link_model/weather.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::sim {

/// Runs a plan in virtual time, exact to the nanosecond. Throws Error (run_failed) that names the
/// cycle of waiting ops if the plan deadlocks.
[[nodiscard]] OpTimes simulate(const Plan& plan);
/// The same, where a plan that deadlocks is an answer.
Result<OpTimes> try_simulate(const Plan& plan);
/// The same under the weather of one iteration, made for this plan; times count from the
/// iteration's begin. `hop`: ranks hear of each other so long after the event. A receive then
/// begins a hop after its send, a receiver's word that it is ready comes a hop later, and members
/// of a collective tell each other in rounds (ArrivalBarrier), then exchange, which takes a hop
/// too.
[[nodiscard]] OpTimes simulate(const Plan& plan, const plan::WeatherOfIteration& at,
                               Duration hop = {});

/// One iteration of a run in virtual time.
struct PlayedIteration {
  Duration begin{};  ///< since the start of the weather
  Duration makespan{};
};

/// Runs `count` iterations of a plan back to back under its weather, the first at its start: each
/// begins when the one before has ended on all ranks. Throws Error if the plan deadlocks, or if the
/// run would last beyond 2^61 ns (73 years).
[[nodiscard]] std::vector<PlayedIteration> play_iterations(const Plan& plan,
                                                           const plan::Weather& weather, int count);

}  // namespace longhaul::sim
