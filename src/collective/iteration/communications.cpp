#include "collective/iteration/communications.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/unit_text.hpp"
#include "plan/lowering/collectives.hpp"

namespace longhaul::collective {

namespace {

/// Sums of sizes, and times of them, stay within 64 bits.
std::optional<Refusal> why_absurd(const Scenario& scenario) {
  constexpr Bytes kMost{std::int64_t{1} << 50};
  const int tensor = scenario.parallel.tensor;
  for (const Bytes message : scenario.costs.message)
    if (tensor > 1 && message > kMost / tensor)
      return refused(
          "a message of {} of each of {} tensor ranks is too large to be communicated (1 PiB in "
          "all is the limit). Use a smaller costs.message.",
          to_text(message), tensor);
  return std::nullopt;
}

}  // namespace

int count_of(Members members, const Parallel& parallel) {
  switch (members) {
    case Members::tensor: return parallel.tensor;
    case Members::shard: return parallel.shard;
    case Members::copies: return parallel.replicas / parallel.shard;
    case Members::replicas: return parallel.replicas;
    case Members::node:
    case Members::across: return 1;  // of each node its own
  }
  return 1;
}

IndexedVector<OperationId, bool> gradient_makers(const StageWork& work) {
  std::set<std::pair<ChunkId, std::int32_t>> with_w;
  for (const Operation& each : work.operations)
    if (each.work == BlockKind::W) with_w.emplace(each.chunk, each.place);
  IndexedVector<OperationId, bool> makes;
  for (const Operation& each : work.operations)
    makes.push_back(each.work == BlockKind::W || (each.work == BlockKind::D && each.has_weights &&
                                                  !with_w.contains({each.chunk, each.place})));
  return makes;
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
  if (parallel.gradient_sync == GradientSync::compressed)
    return refused(
        "gradient_sync = \"compressed\" exchanges parts by rules of its own (schedule stella shows "
        "it). Take \"all-reduce\", \"zero1\", \"zero2\" or \"zero3\".");
  if (auto why = why_absurd(*plan.scenario)) return *std::move(why);
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
