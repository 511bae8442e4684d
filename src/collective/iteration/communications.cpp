#include "collective/iteration/communications.hpp"

#include <algorithm>
#include <utility>

#include "plan/lowering/collectives.hpp"

namespace longhaul::collective {

int count_of(Members members, const Parallel& parallel) {
  switch (members) {
    case Members::tensor: return parallel.tensor;
    case Members::shard: return parallel.shard;
    case Members::copies: return parallel.replicas / parallel.shard;
    case Members::replicas: return parallel.replicas;
    case Members::node: return 1;  // of each node its own
  }
  return 1;
}

std::int64_t earliest_after(const Communication& communication,
                            const IndexedVector<OperationId, std::uint32_t>& positions) {
  std::int64_t after = -1;
  for (const OperationId id : communication.needs)
    after = std::max<std::int64_t>(after, positions[id]);
  const auto before = [&](OperationId id) { return std::int64_t{positions[id]} - 1; };
  if (communication.at_start_of != kNone<OperationId>)
    after = std::max(after, before(communication.at_start_of));
  if (communication.input < 0 || communication.needed_by.empty()) return after;
  std::int64_t first = before(communication.needed_by.front());
  for (const OperationId id : communication.needed_by) first = std::min(first, before(id));
  return std::max(after, first);
}

std::vector<UnitUse> unit_uses(const StageWork& work) {
  std::vector<UnitUse> uses;
  for (const OperationId id : work.order) {
    const Operation& operation = work.operations[id];
    if (operation.unit < 0 || !operation.has_weights || operation.work == BlockKind::W) continue;
    const bool goes_on = !uses.empty() && uses.back().unit == operation.unit &&
                         uses.back().work == operation.work &&
                         uses.back().microbatch == operation.microbatch;
    if (!goes_on) uses.push_back({operation.unit, operation.work, operation.microbatch, {}});
    uses.back().operations.push_back(id);
  }
  return uses;
}

Result<IterationPlan> with_communications(IterationPlan plan) {
  const Parallel& parallel = plan.scenario->parallel;
  if (plan::is_estimate(parallel.gradient_sync))
    return refused(
        "gradient_sync = \"{}\" is an estimate that holds nothing (there is nothing to overlap). "
        "Take \"all-reduce\", \"zero1\", \"zero2\" or \"zero3\".",
        to_string(parallel.gradient_sync));
  for (const DeviceId stage : plan.stages.ids()) {
    StageWork& work = plan.stages[stage];
    if (parallel.tensor > 1) add_tensor_communications(plan, stage, work);
    if (parallel.replicas == 1 || parallel.gradient_sync == GradientSync::none) continue;
    if (parallel.gradient_sync == GradientSync::zero3)
      add_sharded_communications(plan, work);
    else
      add_replica_communications(plan, stage, work);
  }
  return plan;
}

}  // namespace longhaul::collective
