#pragma once

#include "planner/advice/advice.hpp"

namespace longhaul::planner {

/// The same answer on any machine.
inline AdviceOptions by_moves(std::int64_t moves) {
  AdviceOptions options;
  options.moves = moves;
  options.threads = 1;
  return options;
}

}  // namespace longhaul::planner
