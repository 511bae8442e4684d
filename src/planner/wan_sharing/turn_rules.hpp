#pragma once

#include <array>
#include <cstdint>

#include "planner/wan_sharing/turn_evaluator.hpp"

namespace longhaul::planner {

/// Who goes first when several messages of a cell wait for its turns.
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
