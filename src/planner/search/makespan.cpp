#include "planner/search/makespan.hpp"

#include <algorithm>

#include "plan/lowering/lower.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {

Duration makespan_of(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement) {
  return try_makespan(schedule, scenario, arrangement).or_throw();
}

Result<Duration> try_makespan(const Schedule& schedule, const Scenario& scenario,
                              Arrangement arrangement, const plan::TimeAlone& time_alone) {
  const Result<Plan> plan = plan::try_lower(schedule, scenario, arrangement, time_alone);
  if (!plan) return plan.refusal();
  const Result<OpTimes> times = sim::try_simulate(*plan);
  if (!times) return times.refusal();
  Duration last{};
  for (const OpTime& time : *times) last = std::max(last, time.end);
  return last;
}

std::optional<Refusal> why_not_runnable(const Schedule& schedule, const Scenario& scenario,
                                        Arrangement arrangement) {
  const Result<Duration> makespan = try_makespan(schedule, scenario, arrangement);
  return makespan ? std::nullopt : std::optional{makespan.refusal()};
}

}  // namespace longhaul::planner
