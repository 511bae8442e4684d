#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "plan/plan.hpp"
#include "planner/bounds/bounds.hpp"
#include "scenario/scenario.hpp"
#include "schedule/placement.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// A schedule that fits the budget, with what the simulator says of it.
struct Candidate {
  Schedule schedule;
  Duration makespan{};
};

/// A schedule that `best` may not take, and why: over its budget, not defined, or not looked at.
struct RejectedCandidate {
  std::string schedule;
  std::string reason;
  bool unseen = false;  ///< for want of time
};

struct Candidates {
  std::vector<Candidate> fitting;           ///< by makespan, then in the order of the registry
  std::vector<RejectedCandidate> rejected;  ///< in the order of the registry; so are `runnable`
  std::vector<Schedule> runnable;  ///< of the rejected ones, decoupled and with memory enough
  std::vector<Schedule>
      in_cells;  ///< of the rejected ones, those that share the WAN, not simulated
};

/// Every static and dynamic schedule of the registry that lies on one of `placements` (empty: any),
/// simulated; those that share the WAN in cells are rejected. Deterministic. `enough` (asked once
/// one fits): from then on the others are rejected unseen; those that know links and split backward
/// passes come first.
[[nodiscard]] Candidates find_candidates(const Scenario& scenario, Arrangement arrangement,
                                         const std::vector<schedule::Placement>& placements = {},
                                         const std::function<bool()>& enough = {});

/// How a search looks, and for how long.
struct SearchOptions {
  Duration time = std::chrono::seconds{1};  ///< wall-clock time of the search; at least 0
  std::optional<std::int64_t> moves;        ///< instead of `time`: repeatable on any machine
  int threads = 0;                          ///< 0: all cores
  std::uint64_t seed = 1;
  Arrangement arrangement = Arrangement::decoupled;
  std::vector<schedule::Placement> placements;  ///< empty: any
  /// Asked while it searches, never by two threads at once: true ends it with the best so far.
  std::function<bool()> stopped;
};

/// The result of `best`, and how it was found.
struct SearchResult {
  Schedule schedule;  ///< named "best"; within the budget
  Duration makespan{};
  std::string started_from;  ///< the candidate that it came from
  Bound bound;               ///< over all placements that were considered
  Candidates candidates;     ///< that it had to choose from
  std::int64_t moves = 0;    ///< tried by the search
  std::int64_t accepted = 0;
};

/// The best schedule that generation and search find: never worse than any schedule it could choose
/// from. Throws Error where no schedule fits the budget, naming the smallest budget that one does.
[[nodiscard]] SearchResult find_best(const Scenario& scenario, const SearchOptions& options);
/// The same, where a budget that nothing fits is an answer.
Result<SearchResult> try_find_best(const Scenario& scenario, const SearchOptions& options);

}  // namespace longhaul::planner
