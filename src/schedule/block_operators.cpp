#include "schedule/block_operators.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace longhaul::schedule {
namespace {

/// Of each chunk of a copy: how many layers its device gives it.
std::vector<int> layers_of_chunks(const Schedule& schedule, const Scenario& scenario) {
  const IndexedVector<ChunkId, ChunkShare> shares = chunk_shares(schedule);
  std::vector<int> layers;
  for (const ChunkId chunk : ids<ChunkId>(schedule.chunks_of_copy())) {
    const int of_device = scenario.layers[index(schedule.device_of_chunk[chunk])];
    const auto [of, place] = shares[chunk];
    layers.push_back(of_device / of + (place < of_device % of ? 1 : 0));
  }
  return layers;
}

/// By stage of the model.
std::vector<OperatorRange> ranges_of_layers(const std::vector<Operator>& all,
                                            const std::vector<int>& layers) {
  std::vector<OperatorRange> ranges;
  std::size_t first = 0;
  int end = 0;
  for (const int count : layers) {
    end += count;
    std::size_t last = first;
    while (last < all.size() && all[last].layer < end) ++last;
    ranges.push_back({first, last - first});
    first = last;
  }
  return ranges;
}

std::vector<OperatorRange> even_ranges(std::size_t count, std::size_t chunks) {
  std::vector<OperatorRange> ranges;
  std::size_t first = 0;
  for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
    ranges.push_back({first, count / chunks + (chunk < count % chunks ? 1 : 0)});
    first += ranges.back().count;
  }
  return ranges;
}

}  // namespace

IndexedVector<ChunkId, OperatorRange> operators_of_chunks(const Schedule& schedule,
                                                          const Scenario& scenario) {
  LONGHAUL_ASSERT(scenario.operators.known(), "scenario {} has no operators", scenario.name);
  const std::vector<Operator>& all = *scenario.operators.all;
  const bool by_layers = !all.empty() && all.front().layer >= 0;
  const std::vector<OperatorRange> of_stages =
      by_layers ? ranges_of_layers(all, layers_of_chunks(schedule, scenario))
                : even_ranges(all.size(), to_size(schedule.chunks_of_copy()));
  IndexedVector<ChunkId, OperatorRange> ranges(schedule.chunks);
  for (const ChunkId chunk : schedule.chunk_ids())
    ranges[chunk] = of_stages[at(number(schedule.stage_of(chunk)))];
  return ranges;
}

std::vector<BlockOperator> block_operators(std::span<const Operator> of_chunk, BlockKind kind) {
  std::vector<BlockOperator> result;
  if (kind == BlockKind::F || kind == BlockKind::R) {
    for (std::size_t i = 0; i < of_chunk.size(); ++i) {
      const Operator& each = of_chunk[i];
      const Duration time = kind == BlockKind::F ? each.forward : each.recompute;
      if (each.kind == OperatorKind::collective && time == Duration::zero()) continue;
      result.push_back({each.name, each.layer, time, static_cast<int>(i), kind});
    }
    return result;
  }
  const auto add = [&](std::size_t place, Duration time, BlockKind work, const char* suffix) {
    const Operator& each = of_chunk[place];
    if (time > Duration::zero())
      result.push_back({kind == BlockKind::B ? each.name + suffix : each.name, each.layer, time,
                        static_cast<int>(place), work});
  };
  for (std::size_t i = of_chunk.size(); i-- > 0;) {
    if (kind != BlockKind::W) add(i, of_chunk[i].dgrad, BlockKind::D, ".dgrad");
    if (kind != BlockKind::D) add(i, of_chunk[i].wgrad, BlockKind::W, ".wgrad");
  }
  return result;
}

Duration sum_of(std::span<const Operator> of_chunk, BlockKind kind) {
  Duration sum{};
  for (const Operator& each : of_chunk) {
    switch (kind) {
      case BlockKind::F: sum += each.forward; break;
      case BlockKind::R: sum += each.recompute; break;
      case BlockKind::D: sum += each.dgrad; break;
      case BlockKind::W: sum += each.wgrad; break;
      case BlockKind::B: sum += each.dgrad + each.wgrad; break;
    }
  }
  return sum;
}

}  // namespace longhaul::schedule
