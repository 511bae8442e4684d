#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collective/folding/folded_iteration.hpp"
#include "collective/iteration/iteration_times.hpp"
#include "collective/overlap/overlaps.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/overlap/overlap_bound.hpp"
#include "planner/overlap/overlap_limits.hpp"

namespace longhaul::planner {

/// An overlap that others are held against, simulated on the same scenario.
struct OverlapBaseline {
  std::string overlap;
  Duration makespan{};
  Bytes peak;
  bool fits = true;  ///< into the devices' memory; those that do not are named and not counted
  Grain grain = Grain::steps;
};

/// What a search did and what it is held against: none of these is faster and fits.
struct OverlapCertificate {
  std::vector<OverlapBaseline> baselines;
  bool is_proof = true;       ///< false: decided by rules, which may choose a slower one
  std::string decided;        ///< in words
  Duration search{};          ///< on the clock of the machine
  std::size_t evaluated = 0;  ///< iterations simulated
  bool is_stopped = false;    ///< by its watch, before it was done
};

/// A rank that holds more than its device has.
struct MemoryOverflow {
  Rank rank{};
  Bytes peak, capacity;
};

/// How a schedule does under an overlap, simulated.
struct OverlapResult {
  std::string schedule, overlap;
  Parallel parallel;  ///< as it ran: an overlap may imply a sharding
  Duration makespan{};
  Rank rank{};  ///< the one with the most exposed communication, the lowest of several
  collective::Exposure exposure;  ///< of that rank
  /// The communication's part of what a rank does when nothing overlaps, of the rank with the most
  /// of both (Centauri 5.4): 0 to 1.
  double alpha = 0;
  Bytes peak;                              ///< the most that a rank holds
  std::optional<MemoryOverflow> overflow;  ///< of the rank that lacks most; nothing: all fit
  Grain grain = Grain::steps;
  OverlapBound bound;
  std::optional<OverlapCertificate> certificate;            ///< of a searched one
  std::shared_ptr<const collective::IterationPlan> plan{};  ///< as it ran

  /// min(1 / alpha, 1 / (1 - alpha)): what any overlap can gain at most over none (5.4).
  [[nodiscard]] double speedup_bound() const;
  [[nodiscard]] double gap() const;  ///< makespan / bound - 1
  [[nodiscard]] bool fits() const { return !overflow; }
};

/// An iteration under an overlap as it is to run.
struct DecidedIteration {
  collective::IterationPlan plan;
  double alpha = 0;                               ///< OverlapResult::alpha
  std::optional<OverlapBound> bound;              ///< of a searched one, of its space
  std::optional<OverlapCertificate> certificate;  ///< of a searched one
};

/// A search runs here, once. Refused as collective::overlapped() is.
[[nodiscard]] Result<DecidedIteration> decided_iteration(
    const collective::Overlap& overlap, const Schedule& schedule, const Scenario& scenario,
    Arrangement arrangement = Arrangement::decoupled, const OverlapLimits& limits = {},
    const SearchWatch& watch = {});
/// Refused as lower_iteration() is, and where the iteration deadlocks. The names are for the row.
[[nodiscard]] Result<OverlapResult> evaluate_iteration(const DecidedIteration& iteration,
                                                       const std::string& schedule,
                                                       const std::string& overlap);

/// Both.
[[nodiscard]] Result<OverlapResult> evaluate_overlap(
    const collective::Overlap& overlap, const Schedule& schedule, const Scenario& scenario,
    Arrangement arrangement = Arrangement::decoupled, const OverlapLimits& limits = {},
    const SearchWatch& watch = {});

/// The iteration that a trace names: "gpipe+zero3" is gpipe under zero3, made (and searched, within
/// `limits` and as far as `watch` lets it) again. Throws Error where there is no such schedule or
/// overlap; refused as the above.
[[nodiscard]] Result<collective::IterationPlan> iteration_named(std::string_view name,
                                                                const Scenario& scenario,
                                                                Arrangement arrangement,
                                                                const OverlapLimits& limits = {},
                                                                const SearchWatch& watch = {});

/// A plan of an iteration as it is, simulated.
struct SimulatedIteration {
  collective::LoweredIteration lowered;
  OpTimes times;
  Grain grain = Grain::steps;
};
/// Ranks that do the same at the same time are simulated once (FoldedIteration) where that gives
/// the times of the whole to the nanosecond: then they have one representative in the plan. One
/// that still has too many messages runs by `whole` collectives. Refused where one of these is too
/// large to be played alone.
[[nodiscard]] Result<SimulatedIteration> simulate_iteration(const collective::IterationPlan& plan);
/// Where a simulation may give up: the iteration takes so long, or longer.
struct MakespanLimit {
  Duration at{};
  bool is_reached = false;  ///< it gave up: there are no times
};
/// The same, one of many of a scenario; `limit`: where to give up, if anywhere.
[[nodiscard]] Result<SimulatedIteration> simulate_iteration(const collective::IterationPlan& plan,
                                                            collective::FoldingMemo& memo,
                                                            MakespanLimit* limit = nullptr);
/// All ranks, each with its ops: collectives as messages, or refused where these are too many.
[[nodiscard]] Result<SimulatedIteration> simulate_all_ranks(const collective::IterationPlan& plan);
/// Each collective as one op of each member (Grain::whole). Refused where one is too large to be
/// played alone.
[[nodiscard]] Result<SimulatedIteration> simulate_whole_collectives(
    const collective::IterationPlan& plan);
/// None where a rank cannot stand for another, where the order in which resources serve would tell
/// those apart, and where the iteration deadlocks.
[[nodiscard]] std::optional<SimulatedIteration> simulate_folded(
    const collective::IterationPlan& plan, collective::FoldingMemo& memo,
    MakespanLimit* limit = nullptr);

}  // namespace longhaul::planner
