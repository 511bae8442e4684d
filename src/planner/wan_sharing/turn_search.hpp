#pragma once

#include <cstdint>

#include "planner/search/annealing.hpp"
#include "planner/wan_sharing/turn_problem.hpp"

namespace longhaul::planner {

struct TurnAnnealingResult {
  TurnOrders best;
  std::int64_t makespan = 0;  ///< by TurnEvaluator, in ns
  std::int64_t moves = 0;
  std::int64_t accepted = 0;
};

/// Simulated annealing over rows and WAN turns together, from orders that run and fit the memory:
/// a block goes some places to the front or back in its row, a message in its turns, or a block and
/// the message that it sends both; half of the moves on a critical path. Deterministic for a seed
/// if `progress` is.
[[nodiscard]] TurnAnnealingResult anneal_turns(const TurnProblem& problem, const TurnOrders& start,
                                               Cooling cooling, std::uint64_t seed,
                                               const SearchProgress& progress);

}  // namespace longhaul::planner
