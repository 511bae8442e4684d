#include "plan/rows.hpp"

#include <algorithm>
#include <ranges>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "plan/check_extras.hpp"
#include "trace/timeline/columns.hpp"

namespace longhaul::plan {

namespace {

/// By lane: may its ops pass each other?
std::vector<bool> lanes_in_any_order(const Plan& plan) {
  std::vector<bool> any;
  for (const Lane& lane : plan.lanes) any.push_back(lane.serve != Serve::order);
  for (const LaneSource& source : plan.extras.sources) any[index(source.lane)] = true;
  if (plan.extras.windows.empty()) return any;
  const auto optional = ops_that_may_not_run(plan, MayNotRun::optional);
  for (std::size_t i = 0; i < optional.size(); ++i)
    if (optional[i] != 0) any[index(plan.ops[i].lane)] = true;
  return any;
}

/// Of a table that ascends by op; nullptr: it says nothing of this one.
template <typename Entry>
const Entry* entry_of(const std::vector<Entry>& table, OpId op) {
  const auto found = std::ranges::lower_bound(table, op, {}, &Entry::op);
  return found == table.end() || found->op != op ? nullptr : &*found;
}

}  // namespace

PlanRows::Numbering numbering_in(Timeline& timeline, const Plan& plan) {
  PlanRows::Numbering numbers;
  numbers.schedule = trace::NameTable{timeline.schedules}.index_of(plan.schedule);
  trace::NameTable datacenters{timeline.datacenters};
  for (const std::string& name : plan.datacenters)
    numbers.datacenter.push_back(datacenters.index_of(name));
  trace::NameTable lanes{timeline.lanes};
  const std::vector<bool> any_order = lanes_in_any_order(plan);
  for (std::size_t i = 0; i < plan.lanes.size(); ++i)
    numbers.lane.push_back(lanes.index_of(any_order[i] ? plan.lanes[i].name + std::string{kAnyOrder}
                                                       : plan.lanes[i].name));
  trace::NameTable resources{timeline.resources};
  for (const Resource& r : plan.resources) numbers.resource.push_back(resources.index_of(r.name));
  trace::NameTable collectives{timeline.collectives};
  for (std::size_t i = 0; i < plan.stepped.size(); ++i)
    numbers.collective.push_back(collectives.index_of(name_of(plan, i)));
  if (plan.operators != nullptr) {
    trace::NameTable operators{timeline.operators};
    for (const std::string& name : plan.operators->names)
      numbers.operators.push_back(operators.index_of(name));
  }
  return numbers;
}

void PlanRows::set_operator(TimelineRow& row, const OperatorStep& step, ChunkId chunk) const {
  row.layer = plan_->operators->layer_of(step, chunk);
  row.operator_index =
      numbers_ == nullptr ? static_cast<std::int32_t>(step.name) : numbers_->operators[step.name];
  row.slice = step.slice;
  row.slices = step.slices;
}

namespace {

/// `results`: OpTimes or OpResults.
void append_range(Timeline& timeline, const Plan& plan, const auto& results, int iteration,
                  std::size_t first, std::size_t last) {
  const PlanRows::Numbering numbers = numbering_in(timeline, plan);
  const PlanRows rows{plan, results, iteration, &numbers};
  timeline.rows.reserve(timeline.rows.size() + last - first);
  for (std::size_t i = first; i < last; ++i) timeline.rows.push_back(rows[i]);
}

void append_rank(Timeline& timeline, const Plan& plan, const auto& results, int iteration,
                 Rank only) {
  const OpRange own = ops_of_rank(plan, only);
  if (own.count > 0)
    append_range(timeline, plan, results, iteration, own.first, own.first + own.count);
}

}  // namespace

RowKind PlanRows::kind_beside_device(const Op& op, std::span<const ResourceId> held) const {
  const auto holds = [&](ResourceKind kind) {
    return std::ranges::any_of(
        held, [&](ResourceId id) { return plan_->resources[index(id)].kind == kind; });
  };
  if (holds(ResourceKind::device)) return row_kind_of(op.block_kind);
  const OpId id{static_cast<std::uint32_t>(&op - plan_->ops.data())};
  const auto& tasks = plan_->extras.tasks;
  const auto task = std::ranges::lower_bound(tasks, id, {}, &OpTask::op);
  if (task != tasks.end() && task->op == id) return row_kind_of(task->kind);
  if (holds(ResourceKind::workers)) return RowKind::host_task;
  return holds(ResourceKind::copy_engine) ? RowKind::copy : row_kind_of(op.block_kind);
}

void PlanRows::add_extras(TimelineRow& row, std::size_t i) const {
  if (results_ != nullptr && !results_->outcomes.empty())
    row.outcome = static_cast<std::int32_t>(results_->outcomes[i]);
  if (results_ != nullptr && !results_->versions.empty()) row.version = results_->versions[i];
  const OpId id{static_cast<std::uint32_t>(i)};
  if (const OpSlice* const slice = entry_of(plan_->extras.slices, id)) {
    row.slice = slice->slice;
    row.slices = slice->slices;
  }
  const OpServed* const served = entry_of(plan_->extras.served, id);
  if (served == nullptr) return;
  row.request = served->request;
  row.tokens = served->tokens;
  if (is_compute(row.kind)) row.kind = RowKind::prefill;
}

std::string name_of(const Plan& plan, std::size_t stepped) {
  const SteppedCollective& collective = plan.stepped[stepped];
  const CollectiveKind kind = collective.collective.kind;
  std::string name = to_string(kind);
  if (collective.chunk >= 0) name += fmt::format(" of chunk {}", collective.chunk);
  const auto first = std::ranges::find_if(plan.stepped, [&](const SteppedCollective& each) {
    return each.chunk == collective.chunk && each.collective.kind == kind;
  });
  if (&*first == &collective) return name;
  const std::vector<Rank>& members = collective.collective.members;
  constexpr std::size_t kMostNamed = 4;
  std::vector<int> ranks;
  for (const Rank member : members | std::views::take(kMostNamed))
    ranks.push_back(static_cast<int>(member));
  return fmt::format("{} of ranks {}{}", name, fmt::join(ranks, ", "),
                     members.size() > kMostNamed ? ", ..." : "");
}

void append_rows(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration) {
  append_range(timeline, plan, times, iteration, 0, plan.ops.size());
}

void append_rows(Timeline& timeline, const Plan& plan, const OpResults& results, int iteration) {
  append_range(timeline, plan, results, iteration, 0, plan.ops.size());
}

void append_rows(Timeline& timeline, const Plan& plan, const OpTimes& times, int iteration,
                 Rank only) {
  append_rank(timeline, plan, times, iteration, only);
}

void append_rows(Timeline& timeline, const Plan& plan, const OpResults& results, int iteration,
                 Rank only) {
  append_rank(timeline, plan, results, iteration, only);
}

double block_time_factor(const Run& run, DeviceId device, OpId op, int iteration) {
  double factor = 1.0;
  if (run.noise > 0) {
    Random random{derived_seed(run.seed, index(op), static_cast<std::uint64_t>(iteration))};
    factor = std::max(0.1, 1.0 + run.noise * random.normal());
  }
  if (!run.stragglers.empty()) factor *= run.stragglers[index(device)];
  return factor;
}

double block_time_factor(const Plan& plan, const Run& run, OpId op, int iteration) {
  const auto& ids = plan.extras.noise_ids;
  return block_time_factor(run, plan.ranks[index(plan.rank_of(op))].device,
                           ids.empty() ? op : ids[index(op)], iteration);
}

Plan with_stragglers(Plan plan, const Run& run) {
  if (run.stragglers.empty()) return plan;
  Run steady = run;
  steady.noise = 0;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    Op& op = plan.ops[i];
    if (op.kind != OpKind::compute) continue;
    const DeviceId device = plan.ranks[index(plan.rank_of(id))].device;
    op.duration = scaled(op.duration, block_time_factor(steady, device, id, 0));
  }
  return plan;
}

Plan with_noise(Plan plan, const Run& run, int iteration) {
  if (run.stragglers.empty() && run.noise <= 0) return plan;
  plan.extras.announced.resize(plan.ops.size());
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    Op& op = plan.ops[i];
    plan.extras.announced[i] = op.duration;
    if (op.kind == OpKind::compute)
      op.duration = scaled(op.duration, block_time_factor(plan, run, id, iteration));
  }
  return plan;
}

std::vector<ResourceUse> occupancy(const Plan& plan, const OpTimes& times) {
  std::vector<ResourceUse> uses;
  for (const Resource& resource : plan.resources)
    uses.push_back({resource.name, resource.kind, {}, 0});
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    if (plan.op(id).kind == OpKind::recv) continue;  // its send holds for both
    for (const ResourceId resource : plan.resources_of(id)) {
      uses[index(resource)].busy += times[i].end - times[i].start;
      ++uses[index(resource)].holds;
    }
  }
  return uses;
}

}  // namespace longhaul::plan
