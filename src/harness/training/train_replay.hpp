#pragma once

#include <optional>

#include "harness/training/whole_model.hpp"

namespace longhaul::harness {

/// Collective: rank 0 computes a curve once more, by plain code of its own, from the versions that
/// its blocks used, and compares losses, weights and residuals. nullopt on the others.
[[nodiscard]] std::optional<ReplayResult> replay_curve(const engine::Ranks& ranks,
                                                       const TrainRank& rank,
                                                       const TrainRequest& request,
                                                       const WholeModel& whole,
                                                       const TrainCurve& curve);

}  // namespace longhaul::harness
