#pragma once

#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

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
