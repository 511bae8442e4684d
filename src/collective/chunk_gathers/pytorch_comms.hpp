#pragma once

#include <string>
#include <vector>

#include "base/units.hpp"
#include "collective/chunk_gathers/chunk_gathers.hpp"

namespace longhaul::collective {

/// When a block runs, by the simulator.
struct BlockSpan {
  Duration start{}, end{};
};
/// Of each device, by position in its row.
using BlockSpans = IndexedVector<DeviceId, std::vector<BlockSpan>>;

/// The schedule with its communication as torch.distributed.pipelining's runtime reads it ("format
/// compute_comms"): a row for each device with F, B, I, W, SEND_F, RECV_F, SEND_B, RECV_B, UNSHARD,
/// RESHARD, REDUCE_GRAD. A send follows its block, a receive stands where the device is when the
/// message leaves: both sides of two devices have their messages in one order. A chunk's gradients
/// are reduced after its last backward. No gathers: stages are not sharded. Throws Error where
/// PyTorch has no words for the schedule (schedule::write_csv()).
[[nodiscard]] std::string pytorch_comms(const Schedule& schedule, const ChunkGathers& gathers,
                                        const BlockSpans& spans);

}  // namespace longhaul::collective
