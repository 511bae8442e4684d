#include "collective/iteration/iteration_memory.hpp"

#include <algorithm>
#include <limits>
#include <map>

#include "base/unit_text.hpp"
#include "collective/iteration/iteration_of.hpp"
#include "collective/iteration/weight_units.hpp"
#include "schedule/memory.hpp"

namespace longhaul::collective {
namespace {

constexpr std::int64_t kOptimizerOverWeights = 6;

Bytes divided(Bytes size, std::int64_t parts) { return Bytes{(size.count() + parts - 1) / parts}; }

/// Activations that a block takes (positive) or releases, and the places of its first and last
/// operation.
struct BlockMemory {
  std::uint32_t first = std::numeric_limits<std::uint32_t>::max(), last = 0;
  Bytes change;
};

std::map<std::uint32_t, BlockMemory> memory_of_blocks(const IterationPlan& plan, DeviceId stage) {
  const StageWork& work = plan.stages[stage];
  const Lane& lane = compute_lane(*plan.base, plan.scenario->rank(ReplicaId{0}, stage));
  std::map<std::uint32_t, BlockMemory> blocks;
  for (std::uint32_t place = 0; place < work.order.size(); ++place) {
    const Operation& operation = work.operations[work.order[place]];
    BlockMemory& block = blocks[operation.block];
    block.first = std::min(block.first, place);
    block.last = std::max(block.last, place);
    if (operation.piece == 0)
      block.change += plan.base->ops[index(lane.first) + operation.position].size;
  }
  return blocks;
}

/// Places of the first and the last of some operations.
std::pair<std::uint32_t, std::uint32_t> range_of(
    const std::vector<OperationId>& operations,
    const IndexedVector<OperationId, std::uint32_t>& positions) {
  std::pair range{std::numeric_limits<std::uint32_t>::max(), std::uint32_t{0}};
  for (const OperationId operation : operations) {
    range.first = std::min(range.first, positions[operation]);
    range.second = std::max(range.second, positions[operation]);
  }
  return range;
}

/// Beside gathered weights, while each operation runs. A scatter ends some time after its last
/// wgrad: the largest unit's gradients are reserved for it.
std::vector<Bytes> held_by_place(const IterationPlan& plan, DeviceId stage) {
  const StageWork& work = plan.stages[stage];
  std::vector<Bytes> change(work.order.size() + 1);
  for (const auto& [position, block] : memory_of_blocks(plan, stage))
    change[block.change > Bytes{} ? block.first : block.last + 1] += block.change;
  const auto positions = work.positions();
  for (const Communication& each : work.communications) {
    if (each.holds != Holds::gradients) continue;
    const auto [first, last] = range_of(each.needs, positions);
    change[first] += each.size;
    change[last + 1] -= each.size;
  }
  std::vector<Bytes> held;
  Bytes late;
  for (const WeightUnit& unit : work.units) late = std::max(late, unit.gradients);
  Bytes sum = always_held(plan, stage) + late;
  for (std::size_t place = 0; place < work.order.size(); ++place)
    held.push_back(sum += change[place]);
  return held;
}

}  // namespace

Bytes always_held(const IterationPlan& plan, DeviceId stage) {
  const Scenario& scenario = *plan.scenario;
  const Parallel& parallel = scenario.parallel;
  const Bytes buffers = schedule::device_memory(*plan.schedule, scenario)[index(stage)].buffers +
                        plan.stages[stage].second_copy;
  const auto& fixed = scenario.memory.fixed;
  if (index(stage) < fixed.size() && fixed[index(stage)]) return *fixed[index(stage)] + buffers;
  const Bytes weights = scenario.costs.weights[index(stage)];
  const bool sharded = parallel.gradient_sync == GradientSync::zero3;
  const int shard = sharded ? parallel.shard : 1;
  const int of_optimizer = divides_optimizer(parallel.gradient_sync) ? parallel.replicas : shard;
  const int of_gradients =
      parallel.gradient_sync == GradientSync::zero2 ? parallel.replicas : shard;
  return divided(weights, shard) + divided(gradients_of(weights, scenario), of_gradients) +
         divided(weights * kOptimizerOverWeights, of_optimizer) + buffers;
}

std::vector<std::uint32_t> earliest_gathers(const IterationPlan& plan, DeviceId stage) {
  const StageWork& work = plan.stages[stage];
  const auto positions = work.positions();
  struct Gather {
    std::uint32_t first, last;
    Bytes size;
  };
  std::vector<Gather> gathers;
  for (const Communication& each : work.communications) {
    if (each.holds != Holds::weights) continue;
    const auto [first, last] = range_of(each.needed_by, positions);
    gathers.push_back({first, last, each.size});
  }
  std::ranges::sort(gathers, {}, &Gather::first);
  const auto& capacities = plan.scenario->memory.capacity;
  const auto capacity =
      index(stage) < capacities.size() ? capacities[index(stage)] : std::optional<Bytes>{};
  if (!capacity) return std::vector<std::uint32_t>(gathers.size(), 0);
  std::vector<Bytes> held = held_by_place(plan, stage);
  for (const Gather& each : gathers)
    for (std::uint32_t place = each.first; place <= each.last; ++place) held[place] += each.size;
  std::vector<std::uint32_t> earliest;
  std::uint32_t before = 0;
  for (const Gather& each : gathers) {
    std::uint32_t place = each.first;
    while (place > before && held[place - 1] + each.size <= *capacity) held[--place] += each.size;
    earliest.push_back(before = place);
  }
  return earliest;
}

std::optional<Refusal> why_no_unit_fits(const IterationPlan& plan) {
  if (plan.scenario->parallel.gradient_sync != GradientSync::zero3) return std::nullopt;
  const auto& capacities = plan.scenario->memory.capacity;
  for (const DeviceId stage : plan.stages.ids()) {
    if (index(stage) >= capacities.size() || !capacities[index(stage)]) continue;
    Bytes largest;
    for (const WeightUnit& unit : plan.stages[stage].units)
      largest = std::max(largest, unit.weights + unit.gradients);
    const Bytes needed = always_held(plan, stage) + largest;
    if (needed > *capacities[index(stage)])
      return refused(
          "memory.capacity = {} of stage {} has no room for one gathered unit ({} are held all the "
          "time, the largest unit and its gradients take {}). Use at least {}, or smaller units.",
          to_text(*capacities[index(stage)]), index(stage), to_text(needed - largest),
          to_text(largest), to_text(needed));
  }
  return std::nullopt;
}

Bytes peak_memory(const IterationPlan& plan, const IterationTimes& times, Rank rank) {
  const DeviceId stage = plan.base->ranks[index(rank)].device;
  const StageWork& work = plan.stages[stage];
  std::map<Duration, Bytes> taken, released;  // by time
  for (const auto& [position, block] : memory_of_blocks(plan, stage)) {
    if (block.change > Bytes{})
      taken[times.operation(rank, block.first).start] += block.change;
    else
      released[times.operation(rank, block.last).end] += -block.change;
  }
  const auto positions = work.positions();
  for (const CommunicationSpan& each : times.communications(rank)) {
    const Communication& of = work.communications[each.of.communication];
    if (of.holds == Holds::nothing) continue;
    const bool weights = of.holds == Holds::weights;
    const auto [first, last] = range_of(weights ? of.needed_by : of.needs, positions);
    taken[weights ? each.span.start : times.operation(rank, first).start] += of.size;
    released[weights ? times.operation(rank, last).end : each.span.end] += of.size;
  }
  Bytes held = always_held(plan, stage);
  Bytes peak = held;
  auto free = released.begin();
  for (const auto& [time, size] : taken) {
    for (; free != released.end() && free->first <= time; ++free) held -= free->second;
    peak = std::max(peak, held += size);
  }
  return peak;
}

}  // namespace longhaul::collective
