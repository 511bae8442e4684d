#pragma once

#include <vector>

#include "plan/network.hpp"
#include "plan/plan.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// Data-parallel communication of one chunk: which collective, over whom, how long.
struct ChunkCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  int chunk = 0;
  int device = 0;
  Bytes size;
  Duration duration{};
  std::vector<Rank> members;  ///< one per replica, ascending
};

/// Ring over n ranks: (n-1)/n of the bytes at the slowest link's rate plus n-1 latencies for an
/// all-gather or a reduce-scatter; an all-reduce is both (DESIGN.md section 2).
[[nodiscard]] Duration ring_time(CollectiveKind kind, Bytes size, std::size_t members,
                                 const Network::Ring& ring);

/// The collectives of each device, in the order in which its collective lane runs them: gathers by
/// first F of their chunk, reductions by the last D, B or W of theirs (order of replica 0's row,
/// so that all members agree). Empty for one replica or GradientSync::none.
[[nodiscard]] std::vector<std::vector<ChunkCollective>> find_collectives(const Schedule& schedule,
                                                                         const Scenario& scenario,
                                                                         const Network& network);

/// Fills in the ops of the collective lanes (index: rank; kNone where a rank has none), which
/// `of_device` was counted for. The compute lanes must be laid out.
void fill_collectives(Plan& plan, const Schedule& schedule,
                      const std::vector<std::vector<ChunkCollective>>& of_device,
                      const std::vector<LaneId>& lane_of_rank, Network& network);

}  // namespace longhaul
