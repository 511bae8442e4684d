#include <algorithm>

#include "collective/iteration/lower_iteration.hpp"
#include "collective/overlap/rewrites.hpp"

namespace longhaul::collective {
namespace {

bool is_of_backward(const StageWork& work, const Communication& each) {
  return each.traffic == Traffic::fsdp && each.kind == CollectiveKind::all_gather &&
         std::ranges::all_of(each.needed_by, [&](OperationId id) {
           return work.operations[id].work != BlockKind::F;
         });
}

}  // namespace

IterationPlan backward_from_node(IterationPlan plan) {
  if (plan.scenario->parallel.gradient_sync != GradientSync::zero3) return plan;
  for (const DeviceId stage : plan.stages.ids()) {
    std::size_t smallest = to_size(plan.scenario->training_ranks());
    for (const auto& group : groups_of(*plan.scenario, stage, Members::node))
      smallest = std::min(smallest, group.size());
    if (smallest < 2 || smallest == to_size(plan.scenario->parallel.shard)) continue;
    StageWork& work = plan.stages[stage];
    for (Communication& each : work.communications)
      if (is_of_backward(work, each)) each.members = Members::node;
    const Bytes weights = plan.scenario->costs.weights[index(stage)];
    const auto ranks = static_cast<std::int64_t>(smallest);
    work.second_copy = Bytes{(weights.count() + ranks - 1) / ranks};
  }
  return plan;
}

}  // namespace longhaul::collective
