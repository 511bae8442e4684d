#pragma once

#include <vector>

#include "plan/network/network.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::plan {

/// Data-parallel communication of one chunk of the model: which collective, over whom, how long.
struct ChunkCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  StageId stage{};  ///< Schedule::stage_of the chunk
  ChunkId chunk{};  ///< the first of that stage on this device
  Bytes size;
  Duration duration{};
  std::vector<Rank> members;  ///< all ranks that hold a copy of the stage, ascending
};

/// The duration of a collective of `members` over a ring of such hops, by the estimate of `sync`.
[[nodiscard]] Duration collective_time(CollectiveKind kind, Bytes size, std::size_t members,
                                       const schedule::RingHop& ring, GradientSync sync);

/// The collectives of each device, in the order in which its collective lane runs them: gathers by
/// the first F of their stage, then reductions by the last W or B of theirs, in the rows of replica
/// 0 of all who hold it, so that all members agree. A schedule with copies of the model sums the
/// gradients of the copies, with one replica too. Empty where no other rank holds a device's
/// stages, and for GradientSync::none.
[[nodiscard]] IndexedVector<DeviceId, std::vector<ChunkCollective>> find_collectives(
    const Schedule& schedule, const Scenario& scenario, Network& network);

/// Fills in the ops of the collective lanes (index: rank; kNone where a rank has none), which
/// `of_device` was counted for. The compute lanes (index: rank) must be laid out.
void fill_collectives(Plan& plan, const Schedule& schedule,
                      const IndexedVector<DeviceId, std::vector<ChunkCollective>>& of_device,
                      const std::vector<LaneId>& lane_of_rank,
                      const std::vector<LaneId>& compute_lane_of_rank, Network& network);

}  // namespace longhaul::plan
