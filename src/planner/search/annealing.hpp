#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "planner/search/best.hpp"
#include "planner/search/search_state.hpp"

namespace longhaul::planner {

/// How an annealing cools, in ns of makespan that a move may cost: geometrically from `hot` to
/// `cold`.
struct Cooling {
  double hot = 0;
  double cold = 0;
};

/// Says how much of a search is over: 0 at first, 1 or more at the end.
using SearchProgress = std::function<double(std::int64_t moves)>;

struct AnnealingResult {
  Orders best;
  std::int64_t makespan = 0;
  std::int64_t moves = 0;
  std::int64_t accepted = 0;
};

/// Simulated annealing from `start` (whole blocks, valid, within the budget). Half of the moves are
/// made on a critical path. Deterministic for a seed if `progress` is. `simulation`: see
/// SearchState.
[[nodiscard]] AnnealingResult anneal(const OrderProblem& problem, const Schedule& start,
                                     const Simulation& simulation, Cooling cooling,
                                     std::uint64_t seed, const SearchProgress& progress);

}  // namespace longhaul::planner
