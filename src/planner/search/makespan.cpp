#include "planner/search/makespan.hpp"

#include <algorithm>

#include "plan/lowering/lower.hpp"
#include "planner/collectives/grain.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

Result<Duration> last_end(const Plan& plan) {
  const Result<OpTimes> times = sim::try_simulate(plan);
  if (!times) return times.refusal();
  Duration last{};
  for (const OpTime& time : *times) last = std::max(last, time.end);
  return last;
}

}  // namespace

Duration makespan_of(const Schedule& schedule, const Scenario& scenario, Arrangement arrangement) {
  return try_makespan(schedule, scenario, arrangement).or_throw();
}

Result<Duration> try_makespan(const Schedule& schedule, const Scenario& scenario,
                              Arrangement arrangement, const plan::TimeAlone& time_alone) {
  if (!time_alone) {
    const Result<ReportedPlan> reported = try_lower_reported(schedule, scenario, arrangement);
    return reported ? last_end(reported->plan) : reported.refusal();
  }
  const Result<Plan> plan = plan::try_lower(schedule, scenario, arrangement, time_alone);
  return plan ? last_end(*plan) : plan.refusal();
}

std::optional<Refusal> why_not_runnable(const Schedule& schedule, const Scenario& scenario,
                                        Arrangement arrangement) {
  const Result<Duration> makespan = try_makespan(schedule, scenario, arrangement);
  return makespan ? std::nullopt : std::optional{makespan.refusal()};
}

}  // namespace longhaul::planner
