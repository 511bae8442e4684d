#include "plan/lowering/messages.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"

namespace longhaul::plan {
namespace {

/// Where the block that passes an activation (F) or a gradient (D, B) of (chunk, microbatch)
/// stands.
class Positions {
public:
  Positions(const Schedule& schedule, ReplicaId replica)
      : microbatches_{schedule.microbatches}, chunks_{schedule.chunks} {
    const auto cells = to_size(chunks_) * to_size(microbatches_);
    first_[0].assign(cells, -1);
    first_[1].assign(cells, -1);
    for (const DeviceId device : schedule.device_ids()) {
      const auto row = schedule.row(replica, device);
      for (std::size_t i = 0; i < row.size(); ++i) {
        const Block& block = row[i];
        if (block.part != 0 || block.kind == BlockKind::W) continue;
        if (block.kind == BlockKind::R && schedule.recompute_timing == RecomputeTiming::ahead)
          continue;
        std::int32_t& first =
            first_[block.kind != BlockKind::F][cell(block.chunk, block.microbatch)];
        if (first < 0) first = static_cast<std::int32_t>(i);
      }
    }
  }
  /// The block that takes the activation (or gradient) of a chunk and microbatch in its device's
  /// row: the first part of the F (or D or B, or of the R before it).
  [[nodiscard]] std::int32_t first(bool backward, ChunkId chunk, MicrobatchId microbatch) const {
    const std::int32_t at = first_[backward][cell(chunk, microbatch)];
    LONGHAUL_ASSERT(at >= 0, "no block consumes chunk {} microbatch {}", chunk, microbatch);
    return at;
  }

private:
  [[nodiscard]] std::size_t cell(ChunkId chunk, MicrobatchId microbatch) const {
    return at(chunk) * to_size(microbatches_) + at(microbatch);
  }
  int microbatches_, chunks_;
  std::vector<std::int32_t> first_[2];
};

}  // namespace

Messages find_messages(const Schedule& schedule, ReplicaId replica) {
  const Positions positions{schedule, replica};
  Messages messages;
  std::size_t blocks = 0;
  for (const DeviceId device : schedule.device_ids())
    blocks += schedule.row(replica, device).size();
  messages.all.reserve(blocks);  // a block sends one at most
  IndexedVector<DeviceId, std::vector<Message>> to_peer(schedule.devices);
  for (const DeviceId device : schedule.device_ids()) {
    const auto row = schedule.row(replica, device);
    for (std::size_t i = 0; i < row.size(); ++i) {
      const ChunkId chunk = taker_of(schedule, row[i]);
      if (chunk == kNone<ChunkId>) continue;
      const DeviceId peer = schedule.device_of_chunk[chunk];
      if (peer == device) continue;
      const std::int32_t consumer =
          positions.first(is_backward(row[i].kind), chunk, row[i].microbatch);
      to_peer[peer].push_back(
          {row[i], device, peer, static_cast<std::int32_t>(i), consumer, consumer});
    }
    for (const DeviceId peer : schedule.device_ids()) {
      auto& sent = to_peer[peer];
      if (sent.empty()) continue;
      messages.channels.push_back({device, peer, static_cast<std::uint32_t>(messages.all.size()),
                                   static_cast<std::uint32_t>(sent.size())});
      messages.all.insert(messages.all.end(), sent.begin(), sent.end());
      sent.clear();
    }
  }
  for (const DeviceId device : schedule.device_ids())
    messages.input_of.emplace_back(schedule.row(replica, device).size(), -1);
  for (std::size_t i = 0; i < messages.all.size(); ++i) {
    const Message& m = messages.all[i];
    messages.input_of[index(m.to)][at(m.needed_before)] = static_cast<std::int32_t>(i);
  }
  return messages;
}

}  // namespace longhaul::plan
