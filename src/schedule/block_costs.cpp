#include "schedule/block_costs.hpp"

#include "base/index.hpp"

namespace longhaul::schedule {

BlockCosts::BlockCosts(const Schedule& schedule, const Scenario& scenario)
    : activation_{schedule, scenario} {
  const Costs& costs = scenario.costs;
  const std::array<const std::vector<Duration>*, 5> times{
      &costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad, &costs.recompute};
  chunks_.resize(schedule.chunks);
  const IndexedVector<ChunkId, ChunkShare> shares = chunk_shares(schedule);
  for (const ChunkId chunk : schedule.chunk_ids()) {
    const auto device = index(schedule.device_of_chunk[chunk]);
    const auto [of, place] = shares[chunk];
    chunks_[chunk].boundary = costs.message[device];
    for (std::size_t kind = 0; kind < times.size(); ++kind)
      chunks_[chunk].time[kind] = share((*times[kind])[device], of, place);
  }
}

Duration BlockCosts::duration(const Block& block) const {
  return share(of(block.chunk).time[index(block.kind)], block.parts, block.part);
}

Bytes BlockCosts::memory(const Block& block) const {
  const MemoryEffect effect = activation_.effect(block);
  return effect.at_start + effect.at_end;  // a block does one or the other
}

Bytes BlockCosts::message(const Block& block) const {
  return of(is_backward(block.kind) ? previous(block.chunk) : block.chunk).boundary;
}

}  // namespace longhaul::schedule
