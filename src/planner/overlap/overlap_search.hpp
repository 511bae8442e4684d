#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collective/overlap/overlaps.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "planner/overlap/overlap_decisions.hpp"
#include "planner/overlap/overlap_limits.hpp"

namespace longhaul::planner {

/// What a search found, and what it holds against it.
struct FoundOverlap {
  collective::IterationPlan plan;
  collective::IterationPlan undecided;  ///< the same iteration before it was partitioned
  Duration makespan{};
  Bytes peak;
  bool fits = true;
  std::string decided;                          ///< in words
  std::optional<OverlapDecisions> decisions{};  ///< nullopt: a baseline as it is
  std::vector<OverlapBaseline> baselines;
  OverlapBound bound;         ///< of the space: the least of the shardings that it has
  std::size_t evaluated = 0;  ///< iterations simulated, baselines included
  bool is_proof = true;       ///< no baseline that fits is faster
  bool is_stopped = false;    ///< by its watch, after the baselines at the earliest
};

/// How much a search simulates at most, and what it may do.
struct OverlapBudget {
  std::size_t evaluations = 3000;
  std::size_t ops = 60'000'000;  ///< of all simulated plans together
  OverlapLimits limits{};
  SearchWatch watch{};
};

/// The joint search: sharding (unit, regather, bucket; sums whole, or scattered and gathered),
/// partition of each class of communications, order of dgrads and wgrads, units gathered ahead,
/// lanes, breadth first, and of interleaved 1F1B the microbatches launched together. It starts from
/// each overlap that keeps the scenario's sharding (divides_as()) and from a grid, descends one
/// decision at a time, and takes the fastest that fits: never slower than a baseline that fits.
/// Where nothing fits, the one with the least memory.
[[nodiscard]] Result<FoundOverlap> best_overlap(const Schedule& schedule, const Scenario& scenario,
                                                Arrangement arrangement,
                                                const OverlapBudget& budget = {});

/// Centauri's space and tiers, decided by simulation: forwards, then backwards, then the model, one
/// class of communications after the other. Never slower than a baseline either.
[[nodiscard]] Result<FoundOverlap> centauri_overlap(const Schedule& schedule,
                                                    const Scenario& scenario,
                                                    Arrangement arrangement,
                                                    const OverlapBudget& budget = {});

/// The one of collective::searched_overlaps() with that name; `best` is joint_overlap() where the
/// limits let it change orders and leave nothing else out.
[[nodiscard]] Result<FoundOverlap> searched_overlap(std::string_view name, const Schedule& schedule,
                                                    const Scenario& scenario,
                                                    Arrangement arrangement,
                                                    const OverlapLimits& limits = {},
                                                    const SearchWatch& watch = {});

}  // namespace longhaul::planner
