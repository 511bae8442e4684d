#include "schedule/block_costs.hpp"

#include "base/index.hpp"
#include "scenario/model_operators.hpp"
#include "schedule/block_operators.hpp"

namespace longhaul::schedule {
namespace {

/// Index: BlockKind.
std::array<const std::vector<Duration>*, 5> times_by_kind(const Costs& costs) {
  return {&costs.forward, &costs.backward, &costs.dgrad, &costs.wgrad, &costs.recompute};
}

}  // namespace

BlockCosts::BlockCosts(const Schedule& schedule, const Scenario& scenario)
    : activation_{schedule, scenario} {
  const Costs& costs = scenario.costs;
  const auto times = times_by_kind(costs);
  chunks_.resize(schedule.chunks);
  const IndexedVector<ChunkId, ChunkShare> shares = chunk_shares(schedule);
  for (const ChunkId chunk : schedule.chunk_ids()) {
    const auto device = index(schedule.device_of_chunk[chunk]);
    const auto [of, place] = shares[chunk];
    chunks_[chunk].boundary = costs.message[device];
    for (std::size_t kind = 0; kind < times.size(); ++kind)
      chunks_[chunk].time[kind] = share((*times[kind])[device], of, place);
  }
  if (scenario.operators.are_costs) take_operators(schedule, scenario, shares);
}

/// Chunks that share a device are no equal parts of it then: each takes what its operators take,
/// by as much longer or shorter as the device's costs are than the sums of its operators (tensor
/// ranks, speeds, costs of a replica).
void BlockCosts::take_operators(const Schedule& schedule, const Scenario& scenario,
                                const IndexedVector<ChunkId, ChunkShare>& shares) {
  const IndexedVector<ChunkId, OperatorRange> ranges = operators_of_chunks(schedule, scenario);
  const std::span<const Operator> all{*scenario.operators.all};
  const Costs sums =
      scenario::operator_costs(*scenario.operators.all, scenario::operators_of_stages(scenario));
  const auto times_here = times_by_kind(scenario.costs);
  const auto times_of_sums = times_by_kind(sums);
  for (const ChunkId chunk : schedule.chunk_ids()) {
    if (shares[chunk].of == 1) continue;  // its device's costs are the sums already
    const auto [first, count] = ranges[chunk];
    const auto device = index(schedule.device_of_chunk[chunk]);
    for (const BlockKind kind : every<BlockKind>()) {
      const Duration sum = sum_of(all.subspan(first, count), kind);
      const Duration of_device = (*times_of_sums[index(kind)])[device];
      chunks_[chunk].time[index(kind)] =
          of_device == Duration::zero()
              ? sum
              : portion((*times_here[index(kind)])[device], sum, of_device);
    }
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

std::vector<BlockCosts> costs_of_replicas(const Schedule& schedule, const Scenario& scenario) {
  std::vector<BlockCosts> costs;
  if (scenario.replica_costs.empty()) {
    costs.emplace_back(schedule, scenario);
  } else {
    for (const ReplicaId replica : schedule.replica_ids())
      costs.emplace_back(schedule, scenario.of_replica(replica));
  }
  return costs;
}

}  // namespace longhaul::schedule
