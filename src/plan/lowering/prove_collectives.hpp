#pragma once

#include <optional>

#include "base/result.hpp"
#include "plan/plan.hpp"

namespace longhaul::plan {

/// What is wrong with the collectives of a plan that are messages: an algorithm that why_wrong()
/// refutes, an op that is not the message that it stands for or lacks something that it must wait
/// for, ranks that run overlapping groups in orders that form a cycle (named by their ops). None:
/// after each collective each member has exactly what its kind says, each contribution once.
[[nodiscard]] std::optional<Refusal> why_collectives_wrong(const Plan& plan);

}  // namespace longhaul::plan
