#pragma once

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
/// iteration's begin.
[[nodiscard]] OpTimes simulate(const Plan& plan, const plan::WeatherOfIteration& at);

}  // namespace longhaul::sim
