#include "collective/chunk_gathers/chunk_gathers.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace longhaul::collective {
namespace {

using Row = std::span<const Block>;

/// The last block before `end` of the chunk, from `first` on.
std::size_t last_of(Row row, ChunkId chunk, std::size_t first, std::size_t end) {
  std::size_t last = first;
  for (std::size_t b = first; b < end; ++b)
    if (row[b].chunk == chunk) last = b;
  return last;
}

/// Chunks in the order in which the device next computes on them.
std::vector<ChunkId> next_chunks(Row row, std::size_t from, std::size_t most) {
  std::vector<ChunkId> chunks;
  for (std::size_t b = from; b < row.size() && chunks.size() < most; ++b)
    if (std::ranges::find(chunks, row[b].chunk) == chunks.end()) chunks.push_back(row[b].chunk);
  return chunks;
}

std::vector<ChunkGather> gathers_of_row(Row row, std::size_t most) {
  std::vector<ChunkGather> all;
  std::map<ChunkId, std::size_t> active;  // index into `all`
  for (std::size_t b = 0; b < row.size(); ++b) {
    const std::vector<ChunkId> next = next_chunks(row, b, most);
    std::erase_if(active, [&](const auto& each) {
      if (std::ranges::find(next, each.first) != next.end()) return false;
      ChunkGather& gather = all[each.second];
      gather.last = last_of(row, gather.chunk, gather.first, b);
      return true;
    });
    for (const ChunkId chunk : next) {
      if (active.contains(chunk)) continue;
      std::size_t first = b;
      while (row[first].chunk != chunk) ++first;
      active[chunk] = all.size();
      all.push_back({chunk, b, first, first});
    }
  }
  for (const auto& [chunk, place] : active)
    all[place].last = last_of(row, chunk, all[place].first, row.size());
  return all;
}

}  // namespace

ChunkGathers gathers_in_time(const Schedule& schedule) { return gathers_of_next(schedule, 1); }

ChunkGathers gathers_of_next(const Schedule& schedule, int active) {
  ChunkGathers all;
  for (const DeviceId device : schedule.device_ids())
    all.push_back(gathers_of_row(schedule.row(ReplicaId{0}, device), to_size(active)));
  return all;
}

}  // namespace longhaul::collective
