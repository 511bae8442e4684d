#pragma once

#include "base/result.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// The plan with what lies below its blocks (Plan::operators), and with the optimizer's steps where
/// it has none. `plan` is what lower() made of the two; its ops stay blocks, and take what they
/// took: the simulator needs no more. With tasks their lists are of these. Refused where the
/// scenario knows no operators.
///
///     const Plan shared = with_operators(lower(schedule, scenario), schedule,
///     scenario).or_throw(); const OpTimes times = sim::simulate(shared); const Plan inside =
///     expand(shared);  // an op for each operator
Result<Plan> with_operators(Plan plan, const Schedule& schedule, const Scenario& scenario,
                            Granularity below = Granularity::operators);

/// The plan with the optimizer's step on each bucket of weights at the end of the compute lanes: on
/// what its device holds of each stage, after the bucket's gradients have been summed, in the order
/// in which these sums begin. Costs::optimizer says what it takes, nothing where that is empty.
[[nodiscard]] Plan with_optimizer_steps(const Plan& plan, const Schedule& schedule,
                                        const Scenario& scenario);

}  // namespace longhaul::plan
