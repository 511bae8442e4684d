#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// A way to run communication beside computation: a pass from one plan of an iteration to another,
/// and the sharding that it implies. docs/overlap.md has each of them with its source.
struct Overlap {
  const char* name = "";
  const char* summary = "";  ///< one line, for lists
  /// `parallel` as it runs under it: gradient_sync, unit, bucket.
  Parallel (*sharded)(Parallel parallel) = nullptr;
  IterationPlan (*rewrite)(IterationPlan plan) = nullptr;
  Schedule (*reordered)(Schedule schedule) =
      nullptr;  ///< the schedule as it runs; nullptr: as it is
  /// Decided by costs or by simulation (planner/overlap/): it has no pass of its own.
  [[nodiscard]] bool is_searched() const { return rewrite == nullptr; }
};

/// As their authors run them.
[[nodiscard]] std::span<const Overlap> overlaps();
/// Ours, which are held against these: "centauri-rules", "centauri", "best".
[[nodiscard]] std::span<const Overlap> searched_overlaps();
/// Those of both lists.
[[nodiscard]] std::vector<std::string> overlap_names();

/// A comma list of their names, each once. Throws Error on an unknown one, with the nearest.
[[nodiscard]] std::vector<const Overlap*> parse_overlaps(std::string_view list);

/// The iteration of a schedule under an overlap: with its sharding, its communications, in its
/// order. Not of one that is searched. Refused as iteration_of() and with_communications() refuse,
/// and where a device's capacity is too small for a gathered unit.
[[nodiscard]] Result<IterationPlan> overlapped(const Overlap& overlap, const Schedule& schedule,
                                               const Scenario& scenario,
                                               Arrangement arrangement = Arrangement::decoupled);

}  // namespace longhaul::collective
