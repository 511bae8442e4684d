#include "schedule/schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/index.hpp"

namespace longhaul {

std::string to_text(const Block& block) {
  std::string text = fmt::format("{}(chunk {}, microbatch {})", to_string(block.kind), block.chunk,
                                 block.microbatch);
  if (block.parts != 1) text += fmt::format(" part {}/{}", block.part, block.parts);
  return text;
}

Schedule Schedule::of_replica(ReplicaId replica) const {
  Schedule alone = *this;
  alone.replicas = 1;
  alone.cell = 1;
  alone.link_orders.clear();
  if (!replica_microbatches.empty()) alone.microbatches = replica_microbatches[index(replica)];
  alone.replica_microbatches.clear();
  if (replicas_share_rows()) return alone;
  alone.rows.assign(rows.begin() + number(replica) * devices,
                    rows.begin() + (number(replica) + 1) * devices);
  return alone;
}

std::string turns_name(int cell, DeviceId from, DeviceId to) {
  return fmt::format("turns {}/{}>{}", cell, from, to);
}

LinkOrder turns_order(int cell, DeviceId from, DeviceId to) {
  return {turns_name(cell, from, to), {}, LinkOrderKind::turns};
}

LinkOrder order_named(std::string name) {
  const auto kind = name.starts_with("turns ") ? LinkOrderKind::turns : LinkOrderKind::resource;
  return {std::move(name), {}, kind};
}

CellReplicas cell_replicas(const Schedule& schedule, int cell) {
  const int first = cell * schedule.cell;
  return {ReplicaId{first}, std::min(schedule.cell, schedule.replicas - first)};
}

ChunkId taker_of(const Schedule& schedule, const Block& block) {
  constexpr ChunkId kNoOne = kNone<ChunkId>;
  if (block.part + 1 != block.parts) return kNoOne;
  if (block.kind == BlockKind::F) return schedule.is_last(block.chunk) ? kNoOne : next(block.chunk);
  if (!is_backward(block.kind) || schedule.is_first(block.chunk)) return kNoOne;
  return previous(block.chunk);
}

std::vector<ChunkId> chunks_on(const Schedule& schedule, DeviceId device) {
  std::vector<ChunkId> chunks;
  for (const ChunkId chunk : schedule.device_of_chunk.ids()) {
    if (schedule.device_of_chunk[chunk] == device) chunks.push_back(chunk);
  }
  return chunks;
}

IndexedVector<ChunkId, ChunkShare> chunk_shares(const Schedule& schedule) {
  IndexedVector<ChunkId, ChunkShare> shares(schedule.chunks);
  IndexedVector<DeviceId, int> on_device(schedule.devices);
  const auto count_of = [&](ChunkId chunk) -> int& {
    return on_device[schedule.device_of_chunk[chunk]];
  };
  for (int copy = 0; copy < schedule.copies; ++copy) {
    const ChunkId first{copy * schedule.chunks_of_copy()};
    const IdRange<ChunkId> of_copy{first, ChunkId{first + schedule.chunks_of_copy()}};
    for (const ChunkId chunk : of_copy) shares[chunk].place = count_of(chunk)++;
    for (const ChunkId chunk : of_copy) shares[chunk].of = count_of(chunk);
    for (const ChunkId chunk : of_copy) count_of(chunk) = 0;
  }
  return shares;
}

}  // namespace longhaul
