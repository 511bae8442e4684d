#pragma once

#include <vector>

#include "base/result.hpp"
#include "collective/iteration/iteration_plan.hpp"

namespace longhaul::collective {

/// Weights of a chunk, gathered once: asked for before the block `issue` of its device's row,
/// needed from `first` on, kept to the end of `last`. Blocks are positions in Schedule::row().
struct ChunkGather {
  ChunkId chunk{};
  std::size_t issue = 0, first = 0, last = 0;
  friend bool operator==(const ChunkGather&, const ChunkGather&) = default;
};

/// Of each device all gathers, in the order in which they are asked for. Of one chunk each ends
/// before the next is asked for, and each of its blocks lies within one.
using ChunkGathers = IndexedVector<DeviceId, std::vector<ChunkGather>>;

/// A gather for each run of blocks of one chunk, asked for when the first is to begin.
[[nodiscard]] ChunkGathers gathers_in_time(const Schedule& schedule);

/// Those of the next `active` chunks that a device computes on are gathered, each as soon as it is
/// one of them, and given up when it no longer is: how torch.distributed.pipelining lowers a
/// schedule without communication (there with 3).
[[nodiscard]] ChunkGathers gathers_of_next(const Schedule& schedule, int active);

/// The iteration with weights of whole chunks that are gathered so, and gradients that are
/// scattered once, after a chunk's last backward, as pipelines over FSDP modules do it (PyTorch):
/// each on a lane of its own. Refused as iteration_of() is. The scenario's replicas hold shards.
[[nodiscard]] Result<IterationPlan> with_chunk_gathers(
    const Schedule& schedule, const Scenario& scenario, const ChunkGathers& gathers,
    Arrangement arrangement = Arrangement::decoupled);

}  // namespace longhaul::collective
