#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "planner/search/annealing.hpp"
#include "planner/search/best.hpp"

namespace longhaul::planner {

/// One of several rounds of searches that share the time, or the moves, and the threads of a run.
struct SearchRound {
  int round = 0, rounds = 1;
  std::size_t searches = 0;  ///< in this round, at least one
  std::size_t threads = 1;
  std::chrono::steady_clock::time_point begin{};  ///< of all rounds
};

/// Calls run(i, progress) once for each search i, in any order, on all threads. Each has an equal
/// share of the round, which `progress` measures; without time left it is not called.
void run_round(const SearchRound& round, const SearchOptions& options,
               const std::function<void(std::size_t, const SearchProgress&)>& run);

}  // namespace longhaul::planner
