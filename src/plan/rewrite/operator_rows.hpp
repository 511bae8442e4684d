#pragma once

#include <span>
#include <vector>

#include "plan/operators/operator_lists.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::plan {

/// Of a block's change of memory, that of operator `i` of `count`: taken with the first, released
/// with the last.
[[nodiscard]] inline std::int64_t memory_of(std::int64_t of_block, std::size_t i,
                                            std::size_t count) {
  return i == (of_block > 0 ? 0 : count - 1) ? of_block : 0;
}

/// Adds the rows of a block's operators, out of the block's row: its times are cut as its list is.
/// `block.op` is the id of its first operator; `set_operator(row, step)` names the operator.
/// `steps` is not empty.
template <typename SetOperator>
void add_operator_rows(std::vector<TimelineRow>& rows, TimelineRow block,
                       std::span<const OperatorStep> steps, SetOperator set_operator) {
  const Duration length = steps.back().end;
  const std::int64_t start = block.start_ns;
  const Duration taken{block.end_ns - block.start_ns};
  const Duration planned{block.planned_ns};
  const std::int64_t memory = block.size_bytes;
  Duration planned_before{};
  TimelineRow row = block;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    set_operator(row, steps[i]);
    const Duration planned_end = portion(planned, steps[i].end, length);
    row.end_ns = start + portion(taken, steps[i].end, length).count();
    row.planned_ns = (planned_end - planned_before).count();
    row.size_bytes = memory_of(memory, i, steps.size());
    rows.push_back(row);
    planned_before = planned_end;
    row.start_ns = row.end_ns;
    row.ready_ns = 0;  // the next one waits for nothing but its turn
    row.bound_by = row.start_ns > 0 ? row.op : -1;
    row.bound_kind = row.start_ns > 0 ? BoundKind::lane : BoundKind::start;
    ++row.op;
  }
}

}  // namespace longhaul::plan
