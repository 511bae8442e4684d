#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "base/units.hpp"
#include "scenario/scenario.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul::planner {

/// The times of a training step whose ranks were played part by part.
struct HierarchicalTimes {
  Duration last_block{};            ///< the end of the last block
  Duration makespan{};              ///< and of gradients' sums
  Duration iteration{};             ///< and of the optimizer's steps
  std::vector<Duration> rank_ends;  ///< of one tensor rank, by replica * stages + stage
  Duration work{};                  ///< of all blocks of one tensor rank of each place
  std::int64_t ops = 0;             ///< of the plan of all ranks (lower())
  std::int64_t played = 0;          ///< blocks, and messages whose times were computed one by one
  int programs = 0;                 ///< lists of ops that replicas share
  /// Of the rank that holds most (schedule::device_memory()); nullopt where replicas differ.
  std::optional<Bytes> memory{};
};

/// Why ranks of the scenario cannot be played part by part: they share links or interfaces, blocks
/// slow beside messages, or gradients are exchanged in another way.
[[nodiscard]] std::optional<Refusal> why_no_hierarchy(const Scenario& scenario);

/// Plays one training step under a static schedule without a plan of all ranks: pipelines of
/// replicas by op lists that equal ones share (ReplicaProgram), gathers and sums of each stage as
/// rings (RingPlayer), tensor ranks of a place as one. Where no rank shares a link these parts meet
/// at the first forward and the last gradient of a stage alone, so that every rank ends in the
/// simulator's nanosecond (Hierarchy.GivesTheTimesOfThePlanOfAllRanks), with memory of a few
/// numbers a rank. Refused where why_no_hierarchy() says so or the schedule is not defined.
[[nodiscard]] Result<HierarchicalTimes> play_hierarchically(const Scenario& scenario,
                                                            const schedule::Generator& generator);

}  // namespace longhaul::planner
