#pragma once

#include <nlohmann/json.hpp>

#include "plan/plan.hpp"
#include "planner/solver/solver_blocks.hpp"
#include "schedule/memory.hpp"

namespace longhaul {

// Resources that the blocks of the solver's model contend for, beside their devices: links, lanes
// of collectives, memory.

struct ModelMessages {
  nlohmann::json json;
  bool exact = true;  ///< does one pipeline say what all replicas do?
};
/// A message for each block whose output goes to another device. Replicas follow one order: a
/// message takes as long as in the slowest of them, and where they share a resource, as all of
/// theirs one after the other.
[[nodiscard]] ModelMessages messages_of(const ModelBlocks& blocks, const Plan& plan);

/// Gathers of weights and reductions of gradients, each with the blocks that it precedes or
/// follows.
[[nodiscard]] nlohmann::json collectives_of(const ModelBlocks& blocks, const Plan& plan);

/// Memory in portions, each held from the start of one block to the end of another.
[[nodiscard]] nlohmann::json held_of(const ModelBlocks& blocks, const ActivationModel& memory);

/// Bytes that activations may take on each device: the budget, and what its capacity leaves of it.
[[nodiscard]] nlohmann::json memory_limits_of(const Schedule& layout, const Scenario& scenario);

}  // namespace longhaul
