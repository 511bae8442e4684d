#pragma once

#include <optional>
#include <string>

#include "base/result.hpp"
#include "collective/iteration/iteration_times.hpp"
#include "collective/overlap/overlaps.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/overlap/overlap_bound.hpp"

namespace longhaul::planner {

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
  Bytes peak;                     ///< the most that a rank holds
  std::optional<Bytes> capacity;  ///< of that rank's device
  Grain grain = Grain::steps;
  OverlapBound bound;

  /// min(1 / alpha, 1 / (1 - alpha)): what any overlap can gain at most over none (5.4).
  [[nodiscard]] double speedup_bound() const;
  [[nodiscard]] double gap() const;  ///< makespan / bound - 1
  [[nodiscard]] bool fits() const { return !capacity || peak <= *capacity; }
};

/// Refused as collective::overlapped() and lower_iteration() are, and where the iteration
/// deadlocks.
[[nodiscard]] Result<OverlapResult> evaluate_overlap(
    const collective::Overlap& overlap, const Schedule& schedule, const Scenario& scenario,
    Arrangement arrangement = Arrangement::decoupled);

/// A plan of an iteration as it is, simulated.
struct SimulatedIteration {
  collective::LoweredIteration lowered;
  OpTimes times;
};
[[nodiscard]] Result<SimulatedIteration> simulate_iteration(const collective::IterationPlan& plan);

}  // namespace longhaul::planner
