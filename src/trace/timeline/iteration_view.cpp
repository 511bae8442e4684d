#include "trace/timeline/iteration_view.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"

namespace longhaul::trace {

IterationView::IterationView(std::span<const TimelineRow> iteration_rows)
    : rows{iteration_rows}, other_side{match_messages(iteration_rows)} {
  if (rows.empty()) return;
  std::int32_t ranks = 0;
  for (const TimelineRow& row : rows) ranks = std::max(ranks, row.rank + 1);
  blocks.resize(to_size(ranks));
  begin_ns = std::ranges::min(rows, {}, &TimelineRow::start_ns).start_ns;
  end_ns = begin_ns;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TimelineRow& row = rows[i];
    if (is_compute(row.kind)) blocks[at(row.rank)].push_back(i);
    if (is_compute(row.kind) || is_collective(row.kind)) end_ns = std::max(end_ns, row.end_ns);
  }
  for (auto& mine : blocks)
    std::ranges::stable_sort(mine, {}, [&](std::size_t i) { return rows[i].start_ns; });
}

std::int64_t IterationView::clamped(std::int64_t time_ns) const {
  return std::clamp(time_ns, begin_ns, end_ns);
}

std::int64_t IterationView::busy_ns(std::size_t rank) const {
  std::int64_t busy = 0;
  std::int64_t until = begin_ns;
  for (const std::size_t i : blocks[rank]) {
    const std::int64_t from = std::max(until, clamped(rows[i].start_ns));
    until = std::max(from, clamped(rows[i].end_ns));
    busy += until - from;
  }
  return busy;
}

RowLookup::RowLookup(std::span<const TimelineRow> rows, Of what) : rows_{rows} {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool wanted =
        what == Of::blocks ? is_compute(rows[i].kind) : rows[i].kind == RowKind::recv;
    if (wanted) order_.push_back(i);
  }
  std::ranges::sort(order_, {}, [&](std::size_t i) {
    const TimelineRow& row = rows_[i];
    return std::tuple{row.rank, row.chunk, row.microbatch, row.end_ns, i};
  });
}

std::span<const std::size_t> RowLookup::find(std::int32_t rank, std::int32_t chunk,
                                             std::int32_t microbatch) const {
  const auto range =
      std::ranges::equal_range(order_, std::tuple{rank, chunk, microbatch}, {}, [&](std::size_t i) {
        return std::tuple{rows_[i].rank, rows_[i].chunk, rows_[i].microbatch};
      });
  return {range.begin(), range.end()};
}

}  // namespace longhaul::trace
