#pragma once

#include <array>
#include <cstdint>

#include "planner/search/annealing.hpp"
#include "planner/wan_sharing/turn_evaluator.hpp"
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

/// The first of several messages of a cell that wait for its turns.
enum class TurnRule : std::uint8_t {
  readiness,   ///< who was ready first
  rank,        ///< the lowest LocalDPRank: a pipeline's messages before the next one's (Atlas 4.4)
  microbatch,  ///< the lowest microbatch, then who was ready first
  urgency,     ///< who has the longest way to go to the end of the iteration
};

inline constexpr std::array kTurnRules{TurnRule::readiness, TurnRule::rank, TurnRule::microbatch,
                                       TurnRule::urgency};

/// Gives the orders the turns that a rule makes of their rows. False: the rows wait for each other.
[[nodiscard]] bool take_turns(const TurnProblem& problem, TurnOrders& orders, TurnRule rule,
                              TurnEvaluator& times);

}  // namespace longhaul::planner
