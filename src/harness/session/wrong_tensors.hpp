#pragma once

#include <string>
#include <vector>

#include "plan/plan.hpp"
#include "training/gradient_check.hpp"

namespace longhaul::bench {

/// A line for each rank that has wrong tensors, with the worst of them: "iteration 2, rank 3 (west,
/// stage 3): layer 5 attention.qkv: gradient differs by 0.31 (1e-05 is allowed)".
[[nodiscard]] std::vector<std::string> lines_of(const Plan& plan, int iteration,
                                                const std::vector<WrongTensor>& wrong);

}  // namespace longhaul::bench
