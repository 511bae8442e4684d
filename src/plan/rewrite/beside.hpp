#pragma once

#include "plan/plan.hpp"

namespace longhaul::plan {

/// The work of two plans on the same ranks at once: each rank has the lanes of both, those of
/// `first` before those of `second`, and resources of one name and kind are one. Neither waits for
/// the other but for what both hold.
///
///     const Plan both = beside(lower(schedule, scenario), lower_collective(gather, scenario));
///     const auto& gather_in_both = both.stepped.back();
///
/// `second` has messages and collectives alone: no ops that compute, no extras. Throws Error where
/// the ranks of the two are not the same, or a resource of one name is another one.
[[nodiscard]] Plan beside(const Plan& first, const Plan& second);

}  // namespace longhaul::plan
