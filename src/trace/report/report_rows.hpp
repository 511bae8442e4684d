#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "trace/report/idle.hpp"
#include "trace/report/report.hpp"
#include "trace/report/traffic.hpp"
#include "trace/timeline/iteration_view.hpp"

// report_iteration() for rows that are made when they are asked for as well (IterationViewOf).
namespace longhaul::trace {

/// Largest, over ranks, of first F to last block: an optimizer's step has no microbatch and is
/// none.
template <typename Rows>
[[nodiscard]] std::int64_t device_span_ns(const IterationViewOf<Rows>& view) {
  std::int64_t span = 0;
  for (const auto& mine : view.blocks) {
    const auto first =
        std::ranges::find_if(mine, [&](std::size_t i) { return view.rows[i].kind == RowKind::F; });
    if (first == mine.end()) continue;
    const std::int64_t begin = view.rows[*first].start_ns;
    for (const std::size_t i : mine)
      if (view.rows[i].microbatch >= 0) span = std::max(span, view.rows[i].end_ns - begin);
  }
  return span;
}

template <typename Rows>
[[nodiscard]] double bubble_ratio(const IterationViewOf<Rows>& view, std::size_t rank) {
  if (view.makespan_ns() == 0) return 0;
  return 1.0 - static_cast<double>(view.busy_ns(rank)) / static_cast<double>(view.makespan_ns());
}

/// Time within [begin, end) during which the rank runs a block.
template <typename Rows>
[[nodiscard]] std::int64_t busy_within_ns(const IterationViewOf<Rows>& view, std::size_t rank,
                                          std::int64_t begin, std::int64_t end) {
  std::int64_t busy = 0;
  for (const std::size_t i : view.blocks[rank]) {
    const TimelineRow& block = view.rows[i];
    if (block.start_ns >= end) break;
    const std::int64_t from = std::max(begin, block.start_ns);
    const std::int64_t to = std::min(end, block.end_ns);
    if (to <= from) continue;
    busy += to - from;
    begin = to;  // blocks that overlap count once
  }
  return busy;
}

template <typename Rows>
[[nodiscard]] std::optional<double> dp_overlap(const IterationViewOf<Rows>& view) {
  std::int64_t total = 0;
  std::int64_t hidden = 0;
  for (const auto& part : view.collectives) {
    if (part.end_ns <= part.start_ns) continue;
    total += part.end_ns - part.start_ns;
    hidden += busy_within_ns(view, at(part.rank), part.start_ns, part.end_ns);
  }
  if (total == 0) return std::nullopt;
  return static_cast<double>(hidden) / static_cast<double>(total);
}

/// Is the other rank of this message in another datacenter?
[[nodiscard]] inline bool leaves(const TimelineRow& row,
                                 const std::vector<std::int32_t>& datacenter_of_rank) {
  if (row.peer < 0) return false;
  const auto peer = at(row.peer);
  return peer < datacenter_of_rank.size() && datacenter_of_rank[peer] >= 0 &&
         datacenter_of_rank[peer] != row.datacenter;
}

template <typename Rows>
void add_messages(const IterationViewOf<Rows>& view, IterationReport& report) {
  for (const std::size_t i : view.sends) {
    const TimelineRow& row = view.rows[i];
    const std::int64_t busy = row.end_ns - row.start_ns;
    if (leaves(row, view.datacenters)) report.wan_busy_ns += busy;
    if (row.collective >= 0) continue;
    LegUse& use = report.legs[index(row.leg)];
    ++use.messages;
    use.bytes += row.size_bytes;
    use.busy_ns += busy;
  }
}

/// Of the tasks of one kind; `tasks` by (rank, start).
template <typename Rows>
[[nodiscard]] TaskUse use_of(const IterationViewOf<Rows>& view,
                             const std::vector<std::size_t>& tasks) {
  TaskUse use;
  std::int32_t rank = -1;
  std::int64_t until = 0;
  for (const std::size_t i : tasks) {
    const TimelineRow& row = view.rows[i];
    if (std::exchange(rank, row.rank) != row.rank) until = view.begin_ns;
    const std::int64_t start = view.clamped(row.start_ns);
    const std::int64_t end = std::max(start, view.clamped(row.end_ns));
    ++use.tasks;
    use.work_ns = saturating_sum(use.work_ns, end - start);
    use.busy_ns += std::max<std::int64_t>(end - std::max(start, until), 0);
    until = std::max(until, end);
  }
  return use;
}

/// critical_path() of an iteration that has been looked at.
template <typename Rows>
[[nodiscard]] std::vector<PathStep> critical_path(const IterationViewOf<Rows>& view) {
  const RowIndexOf<Rows> index{view.rows};
  std::vector<bool> visited(view.rows.size(), false);  // rows of a broken trace may form a cycle
  std::vector<PathStep> path;
  for (std::size_t at = view.last; at != kNoRow && !visited[at];) {
    visited[at] = true;
    const TimelineRow& row = view.rows[at];
    const bool crosses = row.kind == RowKind::recv && leaves(row, view.datacenters);
    path.push_back({row.op, row.start_ns, row.end_ns, crosses});
    at = index.find(row.bound_by);
  }
  std::ranges::reverse(path);
  return path;
}

/// All of the report but its schedule and iteration. `datacenters`: their names, by the numbers in
/// the rows.
template <typename Rows>
[[nodiscard]] IterationReport report_rows(Rows rows, std::int64_t activation_budget_bytes,
                                          std::span<const std::string> datacenters) {
  const IterationViewOf<Rows> view{rows};
  IterationReport report;
  report.makespan_ns = view.makespan_ns();
  report.device_span_ns = device_span_ns(view);
  for (std::size_t rank = 0; rank < view.blocks.size(); ++rank) {
    report.bubble_ratio.push_back(bubble_ratio(view, rank));
    // A block takes at its start and releases at its end.
    report.peak_activation_bytes.push_back(std::ranges::max(memory_in_gaps(view, rank)));
  }
  report.idle = Attribution<Rows>{view}.run(activation_budget_bytes);
  for (std::size_t kind = 0; kind < view.tasks.size(); ++kind)
    report.tasks[kind] = use_of(view, view.tasks[kind]);
  report.dp_overlap = dp_overlap(view);
  add_messages(view, report);
  report.traffic = traffic_of(view, datacenters);
  report.wan_crossings_on_critical_path =
      static_cast<int>(std::ranges::count_if(critical_path(view), &PathStep::crosses_datacenters));
  return report;
}

}  // namespace longhaul::trace
