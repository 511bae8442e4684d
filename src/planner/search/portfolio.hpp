#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "planner/collectives/time_alone.hpp"
#include "planner/search/annealing.hpp"
#include "planner/search/best.hpp"

namespace longhaul::planner {

/// Chunks on their devices, and what the search knows of their orders.
struct ChunkLayout {
  Schedule like;
  OrderProblem problem;
  Simulation simulation;
  OrderJudge judge;  ///< nullptr: the makespan counts
};

/// OrderJudge of a schedule. Asked by several threads at once.
using ScheduleJudge = std::function<std::optional<JudgedOrder>(const Schedule&)>;

/// An order to start from.
struct Start {
  std::string name;
  std::shared_ptr<const ChunkLayout> layout;
  Schedule schedule;  ///< whole blocks
  OrderScore score;
};

/// Starts, the searches that they grow into, and which of them live on.
class Portfolio {
public:
  /// With a `judge` his score counts, not the makespan.
  Portfolio(const Scenario& scenario, const SearchOptions& options, ScheduleJudge judge = nullptr);

  /// Takes a layout in; its rows must run, within the budget or not. Nothing where it is known.
  void add_layout(const Schedule& like);
  /// A start of a known layout: its blocks made whole. Left out where it does not fit. `makespan`:
  /// of a schedule that fits, where it is known.
  void add(const Schedule& schedule, std::optional<Duration> makespan = {});
  /// More starts of every layout: list schedules with random priorities; one microbatch at a time
  /// where there is nothing else.
  void add_own_starts();
  [[nodiscard]] const std::vector<Start>& starts() const { return starts_; }
  /// wander() from the whole blocks of a schedule of a known layout, whose replicas are equal.
  [[nodiscard]] std::vector<Schedule> as_fast_as(const Schedule& schedule, std::size_t count,
                                                 const std::function<bool()>& stopped) const;
  /// Has a good part of the time gone, so that what is left should go into moves? Never in a search
  /// that is bounded by moves.
  [[nodiscard]] bool is_late() const;

  /// Searches from the best starts, several seeds on all threads: many searches first, fewer and
  /// longer ones after. With a number of moves the result does not depend on the threads. Needs a
  /// start.
  struct Outcome {
    Schedule schedule;  ///< named as its start
    std::int64_t moves = 0;
    std::int64_t accepted = 0;
  };
  [[nodiscard]] Outcome run();

private:
  struct Search {
    Start from;
    std::int64_t moves = 0;
    std::int64_t accepted = 0;
  };
  [[nodiscard]] std::shared_ptr<const ChunkLayout> layout_of(const Schedule& schedule) const;
  [[nodiscard]] std::size_t affordable_searches() const;
  [[nodiscard]] std::vector<Search> first_searches(std::size_t count) const;
  void run_round(std::vector<Search>& searches, int round);
  void run_search(Search& search, int round, std::size_t index,
                  const SearchProgress& progress) const;
  [[nodiscard]] Cooling cooling_of(const Search& search, int round, std::size_t index) const;

  const Scenario& scenario_;
  const SearchOptions& options_;
  ScheduleJudge judge_;
  plan::TimeAlone time_alone_;
  std::chrono::steady_clock::time_point begin_;
  std::size_t threads_;
  std::vector<std::shared_ptr<const ChunkLayout>> layouts_;
  std::vector<Start> starts_;
};

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
