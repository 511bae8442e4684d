#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "trace/timeline/row_lookup.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

/// For every send the position of its receive and the other way round; kNoRow for other rows and
/// for messages that lack a side. A message is named by its ranks, chunk, microbatch, part, leg,
/// owner, piece, collective and step; where two share the name (an activation and a gradient
/// between the same two ranks) the order of op ids decides, since both lanes keep the order of
/// sending.
[[nodiscard]] std::vector<std::size_t> match_messages(std::span<const TimelineRow> rows);

/// Rows of one iteration, by rank and by message. Holds positions in `rows`, which it refers to.
/// `Rows` has size() and [], which gives a TimelineRow: rows that are there
/// (std::span<const TimelineRow>), or ones made when they are asked for (plan::PlanRows), which
/// know the other side of a message themselves. Made rows save the memory of 184 bytes an op.
template <typename Rows>
struct IterationViewOf {
  explicit IterationViewOf(Rows iteration_rows);

  Rows rows;
  /// Of each rank, on all lanes that hold its device, in order of start.
  std::vector<std::vector<std::size_t>> blocks;
  /// By TaskKind, of all ranks, in order of (rank, start).
  std::array<std::vector<std::size_t>, kCountOf<TaskKind>> tasks;
  std::vector<std::size_t> sends, receives;
  /// A rank's part of a collective, from its beginning to its end there. Of one that is messages
  /// the span of the rank's messages; `row` is one of them then.
  struct CollectivePart {
    std::int32_t rank = 0, collective = -1;
    std::int64_t start_ns = 0, end_ns = 0;
    std::size_t row = kNoRow;
  };
  std::vector<CollectivePart> collectives;
  std::vector<std::int32_t> datacenters;  ///< of each rank; -1 for ranks without rows
  std::int64_t begin_ns = 0;              ///< first op on any rank
  std::int64_t end_ns = 0;                ///< last block, task or collective on any rank
  /// The block, task or collective that ends last, the lowest op of several; kNoRow where there is
  /// none.
  std::size_t last = kNoRow;

  [[nodiscard]] std::int64_t makespan_ns() const { return end_ns - begin_ns; }
  /// Time within the iteration during which the rank runs a block.
  [[nodiscard]] std::int64_t busy_ns(std::size_t rank) const;
  /// The time within the iteration nearest to `time_ns`.
  [[nodiscard]] std::int64_t clamped(std::int64_t time_ns) const {
    return std::clamp(time_ns, begin_ns, end_ns);
  }
  /// Of a send its receive and the other way round, as match_messages() has it.
  [[nodiscard]] std::size_t other_side(std::size_t row) const {
    if constexpr (kKnowsOtherSide) {
      return rows.other_side(row);
    } else {
      return other_side_[row];
    }
  }

private:
  static constexpr bool kKnowsOtherSide = requires(const Rows& r, std::size_t i) {
    r.other_side(i);
  };

  /// Inlined, so that of a row that is made for it only the fields that it reads are made.
  [[gnu::always_inline]] void add(std::size_t position, const TimelineRow& row);

  void add_step(std::size_t position, const TimelineRow& row);

  std::vector<std::size_t> other_side_;
  /// Of `collectives`, by rank and collective; the one before, for most steps are of it, too.
  std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> part_of_;
  std::size_t last_part_ = kNoRow;
};
using IterationView = IterationViewOf<std::span<const TimelineRow>>;

inline constexpr std::int64_t kNever = INT64_MAX;

/// Sum that stops at the limits of its type.
[[nodiscard]] std::int64_t saturating_sum(std::int64_t a, std::int64_t b);

/// Activation memory of a rank in the gap before each of its blocks, and after the last.
template <typename Rows>
[[nodiscard]] std::vector<std::int64_t> memory_in_gaps(const IterationViewOf<Rows>& view,
                                                       std::size_t rank) {
  std::vector<std::int64_t> memory{0};
  memory.reserve(view.blocks[rank].size() + 1);
  for (const std::size_t i : view.blocks[rank])
    memory.push_back(saturating_sum(memory.back(), view.rows[i].size_bytes));
  return memory;
}

template <typename Rows>
IterationViewOf<Rows>::IterationViewOf(Rows iteration_rows) : rows{iteration_rows} {
  if constexpr (!kKnowsOtherSide) other_side_ = match_messages(rows);
  if (rows.size() == 0) return;
  begin_ns = kNever;
  for (std::size_t i = 0; i < rows.size(); ++i) add(i, rows[i]);
  if (begin_ns == kNever) begin_ns = 0;  // none of its ops ran
  if (last == kNoRow || end_ns < begin_ns) end_ns = begin_ns;
  const auto start = [this](std::size_t i) { return rows[i].start_ns; };
  for (auto& mine : blocks)
    if (!std::ranges::is_sorted(mine, {}, start)) std::ranges::stable_sort(mine, {}, start);
  const auto rank_and_start = [this](std::size_t i) {
    const TimelineRow& row = rows[i];
    return std::pair{row.rank, row.start_ns};
  };
  for (auto& kind : tasks) std::ranges::stable_sort(kind, {}, rank_and_start);
}

template <typename Rows>
inline void IterationViewOf<Rows>::add(std::size_t position, const TimelineRow& row) {
  const auto rank = at(row.rank);
  if (rank >= blocks.size()) {
    blocks.resize(rank + 1);
    datacenters.resize(rank + 1, -1);
  }
  datacenters[rank] = row.datacenter;
  if (!has_run(row)) return;
  begin_ns = std::min(begin_ns, row.start_ns);
  if (row.kind == RowKind::send) sends.push_back(position);
  if (row.kind == RowKind::recv) receives.push_back(position);
  if (is_compute(row.kind)) {
    blocks[rank].push_back(position);
  } else if (is_task(row.kind)) {
    tasks[index(task_kind_of(row.kind))].push_back(position);
    if (row.kind == RowKind::prefill) return;  // no part of the iteration waits for it
  } else if (is_collective(row.kind)) {
    collectives.push_back({row.rank, -1, row.start_ns, row.end_ns, position});
  } else if (is_message(row.kind) && row.collective >= 0) {
    add_step(position, row);
  } else {
    return;
  }
  if (last != kNoRow && row.end_ns <= end_ns) return;
  last = position;
  end_ns = row.end_ns;
}

template <typename Rows>
void IterationViewOf<Rows>::add_step(std::size_t position, const TimelineRow& row) {
  const bool same = last_part_ != kNoRow && collectives[last_part_].rank == row.rank &&
                    collectives[last_part_].collective == row.collective;
  if (!same) {
    const auto [found, is_new] =
        part_of_.try_emplace({row.rank, row.collective}, collectives.size());
    if (is_new)
      collectives.push_back({row.rank, row.collective, row.start_ns, row.end_ns, position});
    last_part_ = found->second;
  }
  CollectivePart& part = collectives[last_part_];
  part.start_ns = std::min(part.start_ns, row.start_ns);
  part.end_ns = std::max(part.end_ns, row.end_ns);
}

template <typename Rows>
std::int64_t IterationViewOf<Rows>::busy_ns(std::size_t rank) const {
  std::int64_t busy = 0;
  std::int64_t until = begin_ns;
  for (const std::size_t i : blocks[rank]) {
    const TimelineRow& row = rows[i];
    const std::int64_t from = std::max(until, clamped(row.start_ns));
    until = std::max(from, clamped(row.end_ns));
    busy += until - from;
  }
  return busy;
}

}  // namespace longhaul::trace
