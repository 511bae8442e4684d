#pragma once

#include "plan/plan.hpp"

namespace longhaul::plan {

/// Consecutive op ids.
struct OpRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};
/// A rank's ops lie together; empty for a rank without ops.
[[nodiscard]] OpRange ops_of_rank(const Plan& plan, Rank rank);

}  // namespace longhaul::plan
