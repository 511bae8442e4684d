#include "trace/timeline/iteration_view.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"

namespace longhaul::trace {
namespace {

struct RowSide {
  std::int32_t from, to, chunk, microbatch, part;
  MessageLeg leg;
  std::int32_t owner, piece;
  std::size_t row;

  [[nodiscard]] auto name() const {
    return std::tie(from, to, chunk, microbatch, part, leg, owner, piece);
  }
};

/// One side of all messages, ordered by name, then op id.
std::vector<RowSide> sides(std::span<const TimelineRow> rows, RowKind kind) {
  std::vector<RowSide> all;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TimelineRow& row = rows[i];
    if (row.kind != kind) continue;
    const bool sends = kind == RowKind::send;
    all.push_back({sends ? row.rank : row.peer, sends ? row.peer : row.rank, row.chunk,
                   row.microbatch, row.part, row.leg, row.owner, row.piece, i});
  }
  std::ranges::stable_sort(all, {}, &RowSide::name);
  return all;
}

}  // namespace

std::size_t RowIndex::find(std::int64_t op) const {
  if (rows_.empty() || op < rows_.front().op || op > rows_.back().op) return kNoRow;
  // The rows of all ranks have consecutive ids: the guess is right except in partial timelines.
  const auto guess = at(op - rows_.front().op);
  if (guess < rows_.size() && rows_[guess].op == op) return guess;
  const auto found = std::ranges::lower_bound(rows_, op, {}, &TimelineRow::op);
  return found != rows_.end() && found->op == op ? at(found - rows_.begin()) : kNoRow;
}

std::vector<std::size_t> match_messages(std::span<const TimelineRow> rows) {
  const std::vector<RowSide> sends = sides(rows, RowKind::send);
  const std::vector<RowSide> receives = sides(rows, RowKind::recv);
  std::vector<std::size_t> other(rows.size(), kNoRow);
  for (auto s = sends.begin(), r = receives.begin(); s != sends.end() && r != receives.end();) {
    if (s->name() < r->name()) {
      ++s;
    } else if (r->name() < s->name()) {
      ++r;
    } else {
      other[s->row] = r->row;
      other[r->row] = s->row;
      ++s;
      ++r;
    }
  }
  return other;
}

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
