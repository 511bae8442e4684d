#pragma once

#include <optional>

#include "plan/steps/collective_steps.hpp"

namespace longhaul::plan {

/// Plays the messages with sets of members in place of numbers, and says what is wrong: an item
/// that a member sends before it has it, a contribution that is added twice, a message that leaves
/// while something that it needs may still be on its way, a member that in the end lacks an item or
/// a contribution. None: after the collective each member has exactly what the kind says, each
/// contribution once. Costs members^3 bits of memory.
[[nodiscard]] std::optional<Refusal> why_wrong(const CollectiveSteps& steps);

}  // namespace longhaul::plan
