#pragma once

#include "base/result.hpp"
#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// The operators of a schedule's iteration and what they need of each other, without collectives.
/// Refused where the scenario knows no operators, where ranks of a stage differ (replicas with
/// costs, microbatches or rows of their own, copies of the model, cells that share the WAN), and as
/// plan::try_lower() refuses.
[[nodiscard]] Result<IterationPlan> iteration_of(const Schedule& schedule, const Scenario& scenario,
                                                 Arrangement arrangement = Arrangement::decoupled);

}  // namespace longhaul::collective
