#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "planner/search/best.hpp"
#include "planner/search/search_state.hpp"

namespace longhaul::planner {

/// How an annealing cools, in ns of makespan that a move may cost: geometrically from `hot` to
/// `cold`.
struct Cooling {
  double hot = 0;
  double cold = 0;
};

/// As many moves as one that a judge has to look at counts for: the prompts of many iterations are
/// placed.
inline constexpr std::int64_t kMovesOfAJudgement = 200;

/// Says how much of a search is over: 0 at first, 1 or more at the end.
using SearchProgress = std::function<double(std::int64_t moves)>;

struct AnnealingResult {
  Orders best;
  OrderScore score;  ///< of it
  std::int64_t moves = 0;
  std::int64_t accepted = 0;
};

/// Simulated annealing from `start` (whole blocks, valid, within the budget). Half of the moves are
/// made on a critical path. Deterministic for a seed if `progress` is. `simulation` and `judge`:
/// see SearchState.
[[nodiscard]] AnnealingResult anneal(const OrderProblem& problem, const Schedule& start,
                                     const Simulation& simulation, Cooling cooling,
                                     std::uint64_t seed, const SearchProgress& progress,
                                     const OrderJudge& judge = nullptr);

/// Orders that take no longer than `start` (as of anneal()), at most `count`, all different and
/// none of them `start`: each some random moves from the one before. `stopped`, asked now and then,
/// ends it with those so far. Deterministic where that is.
[[nodiscard]] std::vector<Schedule> wander(const OrderProblem& problem, const Schedule& start,
                                           const Simulation& simulation, std::size_t count,
                                           std::uint64_t seed,
                                           const std::function<bool()>& stopped);

}  // namespace longhaul::planner
