#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "planner/search/best.hpp"
#include "planner/wan_sharing/turn_search.hpp"

namespace longhaul::planner {

/// Searches over rows and turns that start from several schedules, and which of them live on.
class TurnPortfolio {
public:
  /// `starts`, not empty: with cells and turns, within the budget, with the simulator's makespans.
  /// The search ends when `options` says, counted from `begin`.
  TurnPortfolio(const Scenario& scenario, const SearchOptions& options,
                std::chrono::steady_clock::time_point begin, std::vector<Candidate> starts);

  /// The best that was met, by the simulator. With a number of moves the result does not depend on
  /// the threads.
  struct Outcome {
    Candidate best;  ///< named as its start
    std::int64_t moves = 0;
    std::int64_t accepted = 0;
  };
  [[nodiscard]] Outcome run();

private:
  struct Search {
    std::shared_ptr<const TurnProblem> problem;
    Candidate at;  ///< where it is
    TurnOrders orders;
    std::int64_t moves = 0;
    std::int64_t accepted = 0;
  };
  void run_round(int round);
  void run_search(Search& search, int round, std::size_t index,
                  const SearchProgress& progress) const;

  const Scenario& scenario_;
  const SearchOptions& options_;
  std::chrono::steady_clock::time_point begin_;
  std::size_t threads_;
  std::vector<Search> searches_;
};

}  // namespace longhaul::planner
