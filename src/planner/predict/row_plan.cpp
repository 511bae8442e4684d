#include "planner/predict/row_plan.hpp"

#include <algorithm>

#include "planner/predict/row_draft.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using profile::ShardingKind;

RowDraft draft_of(const profile::TrainingRow& row) {
  const bool shards = row.sharding == ShardingKind::zero3 || row.sharding == ShardingKind::zero2;
  return shards && row.pipeline == 1 && row.data > 1 ? draft_sharded(row) : draft_pipeline(row);
}

std::size_t last_of(const OpTimes& times) {
  const auto last = std::ranges::max_element(times, {}, &OpTime::end);
  return static_cast<std::size_t>(last - times.begin());
}

/// Ops of each slot on the critical path.
std::vector<std::uint32_t> count_on_path(const Plan& plan, const OpTimes& times,
                                         const std::vector<std::uint32_t>& slot_of_op,
                                         std::size_t slots) {
  std::vector<std::uint32_t> counts(slots);
  OpId id{static_cast<std::uint32_t>(last_of(times))};
  while (id != kNone<OpId>) {
    ++counts[slot_of_op[index(id)]];
    if (plan.op(id).kind == OpKind::recv) {
      id = OpId{plan.op(id).match};
      ++counts[slot_of_op[index(id)]];
    }
    id = times[index(id)].bound_by;
  }
  return counts;
}

/// Of the rank that ends last: its own work, the transfers and collectives on the critical path,
/// and the rest.
IterationParts parts_of(const Plan& plan, const RowRun& run, const OpTimes& times,
                        const std::vector<SlotTime>& slots,
                        const std::vector<std::uint32_t>& slot_of_op) {
  IterationParts parts;
  const OpId last{static_cast<std::uint32_t>(last_of(times))};
  const OpRange own = ops_of_rank(plan, plan.rank_of(last));
  for (std::uint32_t op = own.first; op < own.first + own.count; ++op) {
    if (plan.ops[op].kind != OpKind::compute) continue;
    const SlotTime& time = slots[slot_of_op[op]];
    parts.compute += time.compute;
    parts.tensor += time.tensor;
    parts.optimizer += time.optimizer;
  }
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    parts.pipeline += run.on_path[slot] * slots[slot].pipeline;
    parts.data += run.on_path[slot] * slots[slot].data;
  }
  const auto iteration = static_cast<double>(run.iteration.count());
  double rest = std::max(0.0, iteration - parts.compute - parts.tensor - parts.optimizer);
  parts.data = std::clamp(parts.data, 0.0, rest);
  rest -= parts.data;
  parts.pipeline = std::clamp(parts.pipeline, 0.0, rest);
  parts.bubble = rest - parts.pipeline;
  return parts;
}

}  // namespace

RowPlan::RowPlan(const profile::RowGraph& graph) : graph_{graph} {
  RowDraft made = draft_of(graph_.row);
  slots_ = std::move(made.slots);
  plan_ = made.draft.make();
  slot_of_op_.resize(plan_.ops.size());
  for (const auto& [handle, slot] : made.ops) slot_of_op_[index(made.draft.id(handle))] = slot;
}

RowRun RowPlan::run(const profile::ParameterValues& values) {
  const std::vector<SlotTime> slots = times(values);
  std::vector<Duration> durations;
  for (const SlotTime& slot : slots) durations.push_back(slot.total());
  for (std::size_t op = 0; op < plan_.ops.size(); ++op)
    plan_.ops[op].duration = durations[slot_of_op_[op]];
  const OpTimes played = sim::simulate(plan_);
  RowRun run;
  run.iteration = played[last_of(played)].end;
  run.on_path = count_on_path(plan_, played, slot_of_op_, slots_.size());
  run.parts = parts_of(plan_, run, played, slots, slot_of_op_);
  return run;
}

}  // namespace longhaul::planner
