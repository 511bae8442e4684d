#include "prefill/play/block_memory.hpp"

#include <algorithm>
#include <utility>

#include "base/index.hpp"
#include "prefill/accounts/training_state.hpp"
#include "schedule/memory.hpp"

namespace longhaul::prefill {

MemoryBesideBlocks::MemoryBesideBlocks(const Schedule& schedule, const Scenario& scenario,
                                       const Plan& plan, const TrainingGraph& graph,
                                       const std::vector<Served>& served)
    : gpus_(to_size(graph.gpus())) {
  const schedule::ActivationModel model{schedule, scenario};
  const auto capacities = capacities_of_gpus(schedule, scenario, served);
  for (std::int32_t rank = 0; rank < graph.gpus(); ++rank) {
    const GpuCapacity& own = capacities[at(rank)];
    if (!own.capacity) continue;
    BlockMemory blocks{*own.capacity, own.free, {}, {}};
    Bytes free = own.free;
    for (const std::uint32_t node : graph.blocks(rank)) {
      const Op& op = plan.op(graph.nodes()[node].op);
      const schedule::MemoryEffect effect =
          is_optimizer_step(op) ? schedule::MemoryEffect{} : model.effect(op.block());
      free = free - effect.at_start;
      blocks.during.push_back(free);
      free = free - effect.at_end;
      blocks.after.push_back(free);
    }
    gpus_[at(rank)] = std::move(blocks);
  }
}

/// Training takes more as blocks begin, and prompts only release theirs.
bool MemoryBesideBlocks::fits(std::int32_t rank, ExpectedTraining& expected, Duration now,
                              Duration start, const HeldBytes& asks,
                              std::span<const HeldBytes> others) const {
  const BlockMemory& own = *of(rank);
  const auto held_at = [&](Duration time) {
    Bytes used = asks.bytes;
    for (const HeldBytes& other : others)
      if (other.until <= now || other.until > time) used += other.bytes;
    return used;
  };
  std::size_t block = expected.next_block(rank);
  if (held_at(start) > (block == 0 ? own.first : own.after[block - 1])) return false;
  for (; block < own.during.size(); ++block) {
    const Duration begins = expected.closes(rank, block, now);
    if (begins >= asks.until) return true;
    if (held_at(begins) > own.during[block]) return false;
  }
  return true;
}

Bytes MemoryBesideBlocks::most(std::int32_t rank) const {
  const BlockMemory& own = *of(rank);
  Bytes most = own.first;
  for (const Bytes free : own.after) most = std::max(most, free);
  return most;
}

std::vector<FreeMemoryStep> MemoryBesideBlocks::steps(std::int32_t rank, ExpectedTraining& expected,
                                                      Duration now) const {
  const BlockMemory* const own = of(rank);
  if (own == nullptr) return {};
  std::size_t block = expected.next_block(rank);
  std::vector<FreeMemoryStep> steps{{Duration{}, block == 0 ? own->first : own->after[block - 1]}};
  const auto add = [&](Duration at, Bytes free) {
    steps.push_back({std::max(at, steps.back().at), free});
  };
  for (; block < own->during.size(); ++block) {
    add(expected.closes(rank, block, now), own->during[block]);
    add(expected.opens(rank, block + 1, now), own->after[block]);
  }
  return steps;
}

}  // namespace longhaul::prefill
