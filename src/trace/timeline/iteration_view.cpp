#include "trace/timeline/iteration_view.hpp"

#include <algorithm>
#include <tuple>

#include "base/index.hpp"

namespace longhaul::trace {
namespace {

struct RowSide {
  std::int32_t from, to, chunk, microbatch, part;
  MessageLeg leg;
  std::int32_t owner, piece, collective, step;
  std::size_t row;

  [[nodiscard]] auto name() const {
    return std::tie(from, to, chunk, microbatch, part, leg, owner, piece, collective, step);
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
                   row.microbatch, row.part, row.leg, row.owner, row.piece, row.collective,
                   row.step, i});
  }
  std::ranges::stable_sort(all, {}, &RowSide::name);
  return all;
}

}  // namespace

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

std::int64_t saturating_sum(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return a < 0 ? INT64_MIN : INT64_MAX;
}

}  // namespace longhaul::trace
