#include "trace/report/report.hpp"

#include <algorithm>
#include <tuple>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/timeline/iteration_view.hpp"

namespace longhaul::trace {
namespace {

auto key_of(const TimelineRow& row) { return IterationKey{row.schedule, row.iteration}; }

/// Largest, over ranks, of first F to last block.
std::int64_t device_span_ns(const IterationView& view) {
  std::int64_t span = 0;
  for (const auto& mine : view.blocks) {
    const auto first =
        std::ranges::find_if(mine, [&](std::size_t i) { return view.rows[i].kind == RowKind::F; });
    if (first == mine.end()) continue;
    const std::int64_t begin = view.rows[*first].start_ns;
    for (const std::size_t i : mine) span = std::max(span, view.rows[i].end_ns - begin);
  }
  return span;
}

/// A block takes at its start and releases at its end.
std::int64_t peak_activation_bytes(const IterationView& view, std::size_t rank) {
  return std::ranges::max(memory_in_gaps(view, rank));
}

double bubble_ratio(const IterationView& view, std::size_t rank) {
  if (view.makespan_ns() == 0) return 0;
  return 1.0 - static_cast<double>(view.busy_ns(rank)) / static_cast<double>(view.makespan_ns());
}

/// Time within [begin, end) during which the rank runs a block.
std::int64_t busy_within_ns(const IterationView& view, std::size_t rank, std::int64_t begin,
                            std::int64_t end) {
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

std::optional<double> dp_overlap(const IterationView& view) {
  std::int64_t total = 0;
  std::int64_t hidden = 0;
  for (const TimelineRow& row : view.rows) {
    if (!is_collective(row.kind) || row.end_ns <= row.start_ns) continue;
    total += row.end_ns - row.start_ns;
    hidden += busy_within_ns(view, at(row.rank), row.start_ns, row.end_ns);
  }
  if (total == 0) return std::nullopt;
  return static_cast<double>(hidden) / static_cast<double>(total);
}

/// Is the other rank of this message in another datacenter?
bool leaves(const TimelineRow& row, const std::vector<std::int32_t>& datacenter_of_rank) {
  if (row.peer < 0) return false;
  const auto peer = at(row.peer);
  return peer < datacenter_of_rank.size() && datacenter_of_rank[peer] >= 0 &&
         datacenter_of_rank[peer] != row.datacenter;
}

/// Does this receive take a message from another datacenter?
bool crosses(const TimelineRow& row, const std::vector<std::int32_t>& datacenter_of_rank) {
  return row.kind == RowKind::recv && leaves(row, datacenter_of_rank);
}

/// -1 for ranks without rows.
std::vector<std::int32_t> datacenters_of_ranks(std::span<const TimelineRow> rows) {
  std::vector<std::int32_t> datacenters;
  for (const TimelineRow& row : rows) {
    const auto rank = at(row.rank);
    if (rank >= datacenters.size()) datacenters.resize(rank + 1, -1);
    datacenters[rank] = row.datacenter;
  }
  return datacenters;
}

void add_messages(const IterationView& view, IterationReport& report) {
  const std::vector<std::int32_t> datacenters = datacenters_of_ranks(view.rows);
  for (const TimelineRow& row : view.rows) {
    if (row.kind != RowKind::send) continue;
    LegUse& use = report.legs[index(row.leg)];
    const std::int64_t busy = row.end_ns - row.start_ns;
    ++use.messages;
    use.bytes += row.size_bytes;
    use.busy_ns += busy;
    if (leaves(row, datacenters)) report.wan_busy_ns += busy;
  }
}

/// The block or collective that ends last; the lowest op of several.
std::size_t last_to_end(std::span<const TimelineRow> rows) {
  std::size_t last = kNoRow;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool counts = is_compute(rows[i].kind) || is_collective(rows[i].kind);
    if (counts && (last == kNoRow || rows[i].end_ns > rows[last].end_ns)) last = i;
  }
  return last;
}

}  // namespace

std::vector<IterationKey> iterations_of(const Timeline& timeline) {
  std::vector<IterationKey> keys;
  for (const TimelineRow& row : timeline.rows) {
    if (keys.empty() || keys.back() != key_of(row)) keys.push_back(key_of(row));
  }
  return keys;
}

std::span<const TimelineRow> rows_of(const Timeline& timeline, int schedule, int iteration) {
  const IterationKey key{schedule, iteration};
  const std::span rows{timeline.rows};
  // Traces are written in order; any other order only costs a scan.
  auto first = std::ranges::lower_bound(rows, key, {}, key_of);
  if (first == rows.end() || key_of(*first) != key) first = std::ranges::find(rows, key, key_of);
  while (first != rows.begin() && key_of(*(first - 1)) == key) --first;
  const auto last =
      std::find_if(first, rows.end(), [&](const TimelineRow& row) { return key_of(row) != key; });
  return {first, last};
}

std::vector<PathStep> critical_path(std::span<const TimelineRow> rows) {
  const RowIndex index{rows};
  const std::vector<std::int32_t> datacenters = datacenters_of_ranks(rows);
  std::vector<bool> visited(rows.size(), false);  // rows of a broken trace may form a cycle
  std::vector<PathStep> path;
  for (std::size_t at = last_to_end(rows); at != kNoRow && !visited[at];
       at = index.find(rows[at].bound_by)) {
    visited[at] = true;
    const TimelineRow& row = rows[at];
    path.push_back({row.op, row.start_ns, row.end_ns, crosses(row, datacenters)});
  }
  std::ranges::reverse(path);
  return path;
}

IterationReport report_iteration(const Timeline& timeline, int schedule, int iteration,
                                 std::int64_t activation_budget_bytes) {
  const auto rows = rows_of(timeline, schedule, iteration);
  if (rows.empty())
    fail(
        "there is no iteration {} of schedule {}. List what the trace holds with "
        "`longhaul trace`.",
        iteration, schedule);
  const IterationView view{rows};
  IterationReport report;
  report.schedule = timeline.schedules[at(schedule)];
  report.iteration = iteration;
  report.makespan_ns = view.makespan_ns();
  report.device_span_ns = device_span_ns(view);
  for (std::size_t rank = 0; rank < view.blocks.size(); ++rank) {
    report.bubble_ratio.push_back(bubble_ratio(view, rank));
    report.peak_activation_bytes.push_back(peak_activation_bytes(view, rank));
  }
  report.idle = attribute_idle(view, activation_budget_bytes);
  report.dp_overlap = dp_overlap(view);
  add_messages(view, report);
  report.traffic = traffic_of(rows, timeline.datacenters);
  const std::vector<PathStep> path = critical_path(rows);
  report.wan_crossings_on_critical_path =
      static_cast<int>(std::ranges::count_if(path, &PathStep::crosses_datacenters));
  return report;
}

}  // namespace longhaul::trace
