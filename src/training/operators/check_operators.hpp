#pragma once

#include "collective/iteration/iteration_plan.hpp"
#include "nn/layers/shape.hpp"

namespace longhaul::training {

/// Throws Error where real layers cannot compute an iteration: heads, keys, MLP or tokens do not
/// divide by the tensor ranks, operators are not those of the model, a chunk holds none, or one
/// takes no time, so that the plan leaves out what it computes backward; replicas that would train
/// apart; operations that are cut into pieces. Says what to change.
void check_operators(const collective::IterationPlan& plan, const nn::ModelShape& shape);

}  // namespace longhaul::training
