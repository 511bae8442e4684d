#pragma once

#include <cstdint>

#include "planner/search/best.hpp"

namespace longhaul::planner {

struct ImprovementResult {
  Schedule schedule;  ///< `start`'s name and layout; as good or better; within the budget
  Duration makespan{};
  std::int64_t moves = 0;
  std::int64_t accepted = 0;
};

/// Local search over the orders of `start`, which fits the budget. One thread. May fuse a D and its
/// W into a B, and split a B. `options.time` or `options.moves` bound it.
[[nodiscard]] ImprovementResult improve(const Schedule& start, const Scenario& scenario,
                                        const SearchOptions& options);

}  // namespace longhaul::planner
