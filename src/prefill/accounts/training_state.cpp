#include "prefill/accounts/training_state.hpp"

#include <algorithm>
#include <span>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/memory.hpp"

namespace longhaul::prefill {
namespace {

/// A change of what is free.
struct MemoryChange {
  Duration at{};
  std::int64_t bytes = 0;
};

/// The share of a served model's weights on each GPU: equal parts, the remainder on the first.
std::vector<Bytes> served_weights(int gpus, std::span<const Served> served) {
  std::vector<Bytes> weights(to_size(gpus));
  for (const Served& each : served) {
    if (!each.model.dimensions) continue;
    const Bytes all = each.model.dimensions->weights();
    const std::int64_t stages = each.model.stages;
    for (const Pipeline& pipeline : each.serving.pipelines)
      for (std::size_t stage = 0; stage < pipeline.ranks.size(); ++stage)
        weights[at(pipeline.ranks[stage])] +=
            all / stages + (stage == 0 ? Bytes{all.count() % stages} : Bytes{});
  }
  return weights;
}

std::vector<std::vector<MemoryChange>> activation_changes(const Schedule& schedule,
                                                          const Scenario& scenario,
                                                          const Plan& plan, const OpTimes& times) {
  const schedule::ActivationModel model{schedule, scenario};
  std::vector<std::vector<MemoryChange>> changes(to_size(scenario.training_ranks()));
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    const std::size_t rank = index(plan.rank_of(OpId{static_cast<std::uint32_t>(i)}));
    if (op.kind != OpKind::compute || is_optimizer_step(op) || rank >= changes.size()) continue;
    const schedule::MemoryEffect effect = model.effect(op.block());
    changes[rank].push_back({times[i].start, -effect.at_start.count()});
    changes[rank].push_back({times[i].end, -effect.at_end.count()});
  }
  return changes;
}

}  // namespace

std::vector<GpuCapacity> capacities_of_gpus(const Schedule& schedule, const Scenario& scenario,
                                            const std::vector<Served>& served) {
  const int gpus = scenario.training_ranks();
  const auto needs = schedule::device_memory(schedule, scenario);
  const auto weights = served_weights(gpus, served);
  std::vector<GpuCapacity> all(to_size(gpus));
  for (int rank = 0; rank < gpus; ++rank) {
    const schedule::DeviceNeed& need = needs[index(scenario.place_of(Rank{rank}).stage)];
    if (!need.capacity) continue;
    const Bytes fixed = need.weights + need.gradients + need.optimizer + need.buffers;
    all[at(rank)] = {need.capacity, *need.capacity - fixed - weights[at(rank)]};
  }
  return all;
}

std::vector<std::vector<FreeMemoryStep>> free_memory_steps(const Schedule& schedule,
                                                           const Scenario& scenario,
                                                           const Plan& plan, const OpTimes& times,
                                                           const std::vector<Served>& served) {
  const int gpus = scenario.training_ranks();
  std::vector<std::vector<FreeMemoryStep>> steps(to_size(gpus));
  const auto capacities = capacities_of_gpus(schedule, scenario, served);
  auto changes = activation_changes(schedule, scenario, plan, times);
  for (int rank = 0; rank < gpus; ++rank) {
    if (!capacities[at(rank)].capacity) continue;
    auto& own = steps[at(rank)];
    own.push_back({Duration{}, capacities[at(rank)].free});
    // What is released at an instant is free before what is taken at it.
    std::ranges::stable_sort(changes[at(rank)], [](const MemoryChange& a, const MemoryChange& b) {
      return a.at < b.at || (a.at == b.at && a.bytes > b.bytes);
    });
    for (const MemoryChange& change : changes[at(rank)]) {
      if (change.bytes == 0) continue;
      const Bytes bytes = own.back().bytes + Bytes{change.bytes};
      if (own.back().at == change.at)
        own.back().bytes = bytes;
      else
        own.push_back({change.at, bytes});
    }
  }
  return steps;
}

std::vector<std::vector<InterfaceHold>> interface_holds(const Plan& plan, const OpTimes& times,
                                                        int gpus) {
  std::vector<std::vector<InterfaceHold>> holds(to_size(gpus));
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    if (plan.ops[i].kind != OpKind::send || plan.ops[i].duration <= Duration{}) continue;
    const std::size_t rank = index(plan.rank_of(id));
    if (rank >= holds.size() || plan.level_of(id) != NetworkLevel::datacenter) continue;
    holds[rank].push_back({times[i].start, times[i].end, static_cast<std::int64_t>(i)});
  }
  for (auto& own : holds) std::ranges::sort(own, {}, &InterfaceHold::start);
  return holds;
}

std::vector<WeightSwap> swapped_weights(const IterationBubbles& iteration, const Scenario& scenario,
                                        const std::vector<Served>& served, Bandwidth rate) {
  std::vector<WeightSwap> all;
  for (const Served& each : served) {
    if (!each.model.dimensions)
      fail(
          "{}: --weights swap needs its dimensions, from which weights follow. Give prefill.model.",
          each.model.name);
    const std::vector<Bytes> weights = served_weights(iteration.gpus, {&each, 1});
    WeightSwap swap{.model = each.model.name};
    for (const Bubble& bubble : iteration.bubbles) {
      const Bytes own = weights[at(bubble.rank)];
      if (own == Bytes{}) continue;  // it serves nothing
      const auto stage = scenario.place_of(Rank{bubble.rank}).stage;
      const Duration load = own / rate, restore = scenario.costs.weights[index(stage)] / rate;
      swap.load = std::max(swap.load, load);
      swap.restore = std::max(swap.restore, restore);
      swap.idle += bubble.length();
      ++swap.bubbles;
      const Duration left = bubble.length() - load - restore;
      if (left <= each.model.guard) continue;
      swap.left += left;
      ++swap.usable;
    }
    all.push_back(std::move(swap));
  }
  return all;
}

}  // namespace longhaul::prefill
