#include "schedule/block_costs.hpp"

namespace longhaul {

BlockCosts::BlockCosts(const Schedule& schedule, const Scenario& scenario)
    : activation_{schedule, scenario} {
  const Costs& costs = scenario.costs;
  const std::array<const std::vector<Duration>*, 5> times{
      &costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad, &costs.recompute};
  chunks_.resize(static_cast<std::size_t>(schedule.chunks));
  for (int device = 0; device < schedule.devices; ++device) {
    const std::vector<int> mine = chunks_on(schedule, device);
    const auto d = static_cast<std::size_t>(device);
    for (std::size_t local = 0; local < mine.size(); ++local) {
      OfChunk& chunk = chunks_[static_cast<std::size_t>(mine[local])];
      chunk.boundary = costs.message[d];
      for (std::size_t kind = 0; kind < times.size(); ++kind) {
        chunk.time[kind] =
            share((*times[kind])[d], static_cast<int>(mine.size()), static_cast<int>(local));
      }
    }
  }
}

Duration BlockCosts::duration(const Block& block) const {
  return share(of(block.chunk).time[static_cast<std::size_t>(block.kind)], block.parts, block.part);
}

Bytes BlockCosts::memory(const Block& block) const {
  const MemoryEffect effect = activation_.effect(block);
  return effect.at_start + effect.at_end;  // a block does one or the other
}

Bytes BlockCosts::message(const Block& block) const {
  return of(is_backward(block.kind) ? block.chunk - 1 : block.chunk).boundary;
}

}  // namespace longhaul
