#pragma once

#include <optional>
#include <vector>

#include "collective/rules/model_rule.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// How many microbatches interleaved 1F1B can launch together of a chunk (L1, L2 of Centauri's
/// equation 2): pairs of counts from the stages (depth first) to all microbatches (breadth first),
/// of many the least, the largest and some between. None where the schedule is not interleaved 1F1B
/// as longhaul makes it.
[[nodiscard]] std::vector<MicrobatchGroup> microbatch_groups(const Schedule& schedule,
                                                             const Scenario& scenario);

/// Interleaved 1F1B of the scenario in such groups; nothing where it is not defined for them.
[[nodiscard]] std::optional<Schedule> in_groups(const MicrobatchGroup& group,
                                                const Scenario& scenario);

/// What equation 2 chose, as the schedule can have it: each count the least that is not below, or
/// the largest. `known` is not empty.
[[nodiscard]] MicrobatchGroup nearest_group(const collective::ModelChoice& choice,
                                            const std::vector<MicrobatchGroup>& known);

}  // namespace longhaul::planner
