#pragma once

#include <string>
#include <vector>

#include "engine/options.hpp"
#include "engine/ranks.hpp"
#include "plan/plan.hpp"
#include "training/gradient_check.hpp"

namespace longhaul::harness {

/// Collective. The wrong messages of all ranks, in words, in order of ranks: receiver, leg, sender,
/// and the message that was expected. On rank 0; the first few.
[[nodiscard]] std::vector<std::string> gather_wrong_messages(
    const engine::Ranks& ranks, const Plan& plan, const std::vector<engine::WrongMessage>& mine);

/// A line for each rank that has wrong tensors, with the worst of them: "iteration 2, rank 3 (west,
/// stage 3): layer 5 attention.qkv: gradient differs by 0.31 (1e-05 is allowed)".
[[nodiscard]] std::vector<std::string> lines_of(const Plan& plan, int iteration,
                                                const std::vector<training::WrongTensor>& wrong);

}  // namespace longhaul::harness
