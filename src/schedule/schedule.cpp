#include "schedule/schedule.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/index.hpp"

namespace longhaul {

std::string turns_name(int cell, DeviceId from, DeviceId to) {
  return fmt::format("turns {}/{}>{}", cell, from, to);
}

CellReplicas cell_replicas(const Schedule& schedule, int cell) {
  const int first = cell * schedule.cell;
  return {ReplicaId{first}, std::min(schedule.cell, schedule.replicas - first)};
}

std::vector<int> chunks_on(const Schedule& schedule, DeviceId device) {
  std::vector<int> chunks;
  for (std::size_t chunk = 0; chunk < schedule.device_of_chunk.size(); ++chunk) {
    if (schedule.device_of_chunk[chunk] == device) chunks.push_back(static_cast<int>(chunk));
  }
  return chunks;
}

std::vector<ChunkShare> chunk_shares(const Schedule& schedule) {
  const auto chunks = to_size(schedule.chunks);
  const auto of_copy = to_size(schedule.chunks_of_copy());
  std::vector<ChunkShare> shares(chunks);
  std::vector<int> on_device(to_size(schedule.devices));
  const auto count_of = [&](std::size_t chunk) -> int& {
    return on_device[index(schedule.device_of_chunk[chunk])];
  };
  for (std::size_t first = 0; first < chunks; first += of_copy) {
    const std::size_t last = first + of_copy;
    for (std::size_t chunk = first; chunk < last; ++chunk) shares[chunk].place = count_of(chunk)++;
    for (std::size_t chunk = first; chunk < last; ++chunk) shares[chunk].of = count_of(chunk);
    for (std::size_t chunk = first; chunk < last; ++chunk) count_of(chunk) = 0;
  }
  return shares;
}

}  // namespace longhaul
