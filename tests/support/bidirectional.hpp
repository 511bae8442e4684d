#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "schedule/schedule.hpp"

namespace longhaul::testing {

/// The simplest bidirectional schedule: GPipe's two phases, both copies together. All forwards in
/// the order of their earliest time, then all backwards (D, then W directly after it).
inline Schedule bidirectional_gpipe(int devices, int microbatches, int replicas = 1) {
  Schedule schedule;
  schedule.name = "bd-gpipe";
  schedule.devices = devices;
  schedule.chunks = 2 * devices;
  schedule.microbatches = microbatches;
  schedule.replicas = replicas;
  schedule.copies = 2;
  for (int device = 0; device < devices; ++device)
    schedule.device_of_chunk.push_back(DeviceId{device});
  for (int device = devices - 1; device >= 0; --device)
    schedule.device_of_chunk.push_back(DeviceId{device});
  schedule.rows.resize(static_cast<std::size_t>(devices));
  for (int device = 0; device < devices; ++device) {
    std::vector<Block>& row = schedule.rows[static_cast<std::size_t>(device)];
    // (earliest slot, microbatch, chunk): even microbatches come in at device 0, odd ones at P-1.
    std::vector<std::array<int, 3>> slots;
    for (int microbatch = 0; microbatch < microbatches; ++microbatch) {
      const int stage = microbatch % 2 == 0 ? device : devices - 1 - device;
      const int chunk = microbatch % 2 == 0 ? stage : devices + stage;
      slots.push_back({microbatch / 2 + stage, microbatch, chunk});
    }
    std::ranges::sort(slots);
    for (const auto& [slot, microbatch, chunk] : slots)
      row.push_back(
          {.kind = BlockKind::F, .chunk = ChunkId{chunk}, .microbatch = MicrobatchId{microbatch}});
    for (auto& [slot, microbatch, chunk] : slots)
      slot = microbatch / 2 + devices - 1 - chunk % devices;
    std::ranges::sort(slots);
    for (const auto& [slot, microbatch, chunk] : slots) {
      row.push_back(
          {.kind = BlockKind::D, .chunk = ChunkId{chunk}, .microbatch = MicrobatchId{microbatch}});
      row.push_back(
          {.kind = BlockKind::W, .chunk = ChunkId{chunk}, .microbatch = MicrobatchId{microbatch}});
    }
  }
  return schedule;
}

}  // namespace longhaul::testing
