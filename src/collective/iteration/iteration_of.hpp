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

/// The compute lane of a rank of the stage.
[[nodiscard]] const Lane& compute_lane(const Plan& plan, Rank rank);

/// The operations of a stage in the order of its compute lanes in `plan.base`, with units and
/// without communications.
///
/// An F needs the F before it, a D or W the nearest D of an operator after its own, which brings
/// the gradient of its output, and the F (or R) of its own operator. The first of a block needs
/// what its device's other chunk hands over, or the block's messages.
[[nodiscard]] StageWork operations_of_stage(const IterationPlan& plan, DeviceId stage);

}  // namespace longhaul::collective
