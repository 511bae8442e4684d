#include "plan/rewrite/expand.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "plan/rewrite/operator_rows.hpp"
#include "plan/rewrite/renumber.hpp"
#include "plan/rows.hpp"

namespace longhaul::plan {
namespace {

/// The operators of an op of a plan of blocks.
std::span<const OperatorStep> steps_of(const Plan& plan, const Op& op) {
  if (op.kind != OpKind::compute) return {};
  return plan.operators->list(OperatorListId{op.match});
}

/// Calls `visit(number of the operator, begin, end)` for each operator of a block that takes
/// `whole`, from 0 on.
template <typename Visit>
void each_operator(std::span<const OperatorStep> steps, Duration whole, Visit visit) {
  const Duration length = steps.back().end;
  Duration begin{};
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Duration end = portion(whole, steps[i].end, length);
    visit(i, begin, end);
    begin = end;
  }
}

/// A window, a priority or a dependency of a block says nothing of its operators.
void require_plain_blocks(const Plan& plan) {
  const PlanExtras& extras = plan.extras;
  if (extras.windows.empty() && extras.priorities.empty() && extras.far.empty()) return;
  fail(
      "{} has ops with windows, priorities or dependencies that reach back (they are of whole "
      "blocks). Expand it before it gets them, or use --granularity block.",
      plan.schedule);
}

}  // namespace

OperatorIds::OperatorIds(const Plan& plan) {
  LONGHAUL_ASSERT(plan.operators != nullptr && plan.granularity == Granularity::blocks,
                  "plan of {} is of {}s", plan.schedule, to_string(plan.granularity));
  first_.reserve(plan.ops.size() + 1);
  std::size_t next = 0;
  for (const Op& op : plan.ops) {
    first_.push_back(static_cast<std::uint32_t>(next));
    next += std::max<std::size_t>(1, steps_of(plan, op).size());
  }
  if (next >= index(kNone<OpId>))
    fail("{} has {} operators (2^32 ids are the limit). Use --granularity block.", plan.schedule,
         next);
  first_.push_back(static_cast<std::uint32_t>(next));
}

Plan expand(const Plan& plan) {
  if (plan.granularity != Granularity::blocks) return plan;
  require_plain_blocks(plan);
  const OperatorIds ids{plan};
  const auto first = [&](OpId id) { return ids.first(id); };
  const auto last = [&](OpId id) { return ids.last(id); };
  Plan out = renumbered_frame(plan, first);
  out.granularity = Granularity::operators;
  out.after.reserve(plan.after.size());
  for (const OpId before : plan.after) out.after.push_back(last(before));
  for (Lane& lane : out.lanes) {
    const std::size_t end = index(lane.first) + lane.count;
    const auto end_id =
        end == plan.ops.size() ? ids.ops() : index(first(OpId{static_cast<std::uint32_t>(end)}));
    lane.first =
        end == index(lane.first) ? OpId{static_cast<std::uint32_t>(end_id)} : first(lane.first);
    lane.count = static_cast<std::uint32_t>(end_id - index(lane.first));
  }
  out.ops.reserve(ids.ops());
  for (const Op& op : plan.ops) {
    Op part = renumbered(op, first, last);
    const std::span<const OperatorStep> steps = steps_of(plan, op);
    if (steps.empty()) {
      out.ops.push_back(part);
      continue;
    }
    const auto base = static_cast<std::uint32_t>(steps.data() - plan.operators->steps.data());
    each_operator(steps, op.duration, [&](std::size_t i, Duration begin, Duration end) {
      part.match = base + static_cast<std::uint32_t>(i) + 1;
      part.duration = end - begin;
      part.size = Bytes{memory_of(op.size.count(), i, steps.size())};
      out.ops.push_back(part);
      part.after_count = 0;
      part.after = OpId{};
    });
  }
  return out;
}

void append_operator_rows(Timeline& timeline, const Plan& plan, const OpTimes& times,
                          int iteration) {
  LONGHAUL_ASSERT(plan.extras.overlap.none(), "blocks of {} slow beside messages", plan.schedule);
  const OperatorIds ids{plan};
  const PlanRows::Numbering numbers = numbering_in(timeline, plan);
  const PlanRows blocks{plan, times, iteration, &numbers};
  timeline.rows.reserve(timeline.rows.size() + ids.ops());
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const Op& op = plan.ops[i];
    TimelineRow row = blocks[i];
    row.op = static_cast<std::int64_t>(index(ids.first(OpId{static_cast<std::uint32_t>(i)})));
    if (row.bound_by >= 0)
      row.bound_by = static_cast<std::int64_t>(index(ids.last(times[i].bound_by)));
    const std::span<const OperatorStep> steps = steps_of(plan, op);
    if (steps.empty()) {
      timeline.rows.push_back(row);
      continue;
    }
    add_operator_rows(timeline.rows, row, steps, [&](TimelineRow& each, const OperatorStep& step) {
      blocks.set_operator(each, step, op.chunk);
    });
  }
}

OperatorCount count_operators(const Plan& plan) {
  OperatorCount count;
  if (plan.operators == nullptr) return count;
  std::vector<bool> used(plan.operators->begin.size() - 1, false);
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::compute) continue;
    ++count.blocks;
    count.operators += std::max<std::size_t>(1, steps_of(plan, op).size());
    used[op.match] = true;
  }
  count.lists = static_cast<std::size_t>(std::count(used.begin() + 1, used.end(), true));
  return count;
}

}  // namespace longhaul::plan
