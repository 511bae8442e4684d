#pragma once

#include "engine/options.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::engine {

/// Holds the times of a rank's ops against its plan, knowing nothing of the engine: ops of a lane
/// start in turn, blocks one after the other, nothing before what it depends on, no block with
/// less than all pieces of a message.
[[nodiscard]] Checks verify_order(const Plan& plan, Rank rank, const OpTimes& times);

}  // namespace longhaul::engine
