#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/index.hpp"
#include "trace/report/report.hpp"
#include "trace/timeline/iteration_view.hpp"
#include "trace/timeline/memory_limit.hpp"

namespace longhaul::trace {

/// Part of a device's idle time, from `begin` up to `end`.
struct IdleGap {
  std::int64_t begin = 0, end = 0;
  std::int64_t forward_blocked_since = kNever;
};

/// Walks back from the block after each gap. Every step takes the latest piece of what is left of
/// the gap, so that the pieces add up to it.
template <typename Rows>
class Attribution {
public:
  explicit Attribution(const IterationViewOf<Rows>& view)
      : view_{view},
        index_{view.rows},
        blocks_{view.rows, all_blocks(view)},
        receives_{view.rows, view.receives} {}

  IdleTime run(std::int64_t activation_budget_bytes) {
    for (std::size_t rank = 0; rank < view_.blocks.size(); ++rank) {
      const std::vector<std::int64_t> since =
          blocked_forwards_since(view_, rank, blocks_, receives_, activation_budget_bytes);
      std::int64_t until = view_.begin_ns;
      for (std::size_t k = 0; k < view_.blocks[rank].size(); ++k) {
        const TimelineRow& block = view_.rows[view_.blocks[rank][k]];
        const std::int64_t start = view_.clamped(block.start_ns);
        if (start > until) before_block(block, {until, start, since[k]});
        until = std::max(until, view_.clamped(block.end_ns));
      }
      after_last_block(rank, until);
    }
    return idle_;
  }

private:
  [[nodiscard]] static std::vector<std::size_t> all_blocks(const IterationViewOf<Rows>& view) {
    std::vector<std::size_t> all;
    std::size_t count = 0;
    for (const auto& mine : view.blocks) count += mine.size();
    all.reserve(count);
    for (const auto& mine : view.blocks) all.insert(all.end(), mine.begin(), mine.end());
    return all;
  }

  /// Gives the time after `from` to `part`, and takes it off the gap.
  void take(IdleGap& gap, std::int64_t from_ns, std::int64_t IdleTime::*part) {
    const std::int64_t from = std::clamp(from_ns, gap.begin, gap.end);
    idle_.*part += gap.end - from;
    gap.end = from;
  }

  void before_block(const TimelineRow& block, IdleGap gap) {
    const std::size_t at = index_.find(block.bound_by);
    if (at == kNoRow) return before_producer(kNoRow, gap);
    const TimelineRow& cause = view_.rows[at];
    if (is_collective(cause.kind) || cause.collective >= 0)
      return take(gap, gap.begin, &IdleTime::collective);
    if (is_task(cause.kind)) return before_task(cause, block.start_ns, gap);
    if (cause.kind != RowKind::recv && cause.kind != RowKind::send)
      return before_producer(kNoRow, gap);
    // Its input on the wire or, in plans whose blocks depend on sends, its own message.
    take(gap, cause.start_ns, &IdleTime::link_wait);
    const std::size_t send = cause.kind == RowKind::send ? at : view_.other_side(at);
    if (send == kNoRow) return before_producer(kNoRow, gap);
    before_transfer(view_.rows[send], gap);
  }

  [[nodiscard]] static std::int64_t IdleTime::*part_of(const TimelineRow& task) {
    const TaskKind kind = task_kind_of(task.kind);
    if (kind == TaskKind::prefill) return &IdleTime::prefill;
    return is_copy(kind) ? &IdleTime::copy : &IdleTime::host_task;
  }

  /// From when it was ready until its end it, or what held its threads, was waited for.
  void before_task(const TimelineRow& task, std::int64_t waiting_since, IdleGap gap) {
    const bool waited = task.bound_kind != BoundKind::dependency;
    take(gap, waited ? std::min(task.ready_ns, task.start_ns) : task.start_ns, part_of(task));
    // Rows of a broken trace may form a cycle: each step goes back in time.
    if (waited || gap.begin == gap.end || task.start_ns >= waiting_since)
      return before_producer(kNoRow, gap);
    before_block(task, gap);
  }

  void before_transfer(const TimelineRow& send, IdleGap gap) {
    const bool paired = send.bound_kind == BoundKind::rendezvous;
    take(gap, send.ready_ns, paired ? &IdleTime::rendezvous : &IdleTime::link_busy);
    const std::size_t cause = index_.find(send.bound_by);
    if (cause != kNoRow && is_task(view_.rows[cause].kind))
      return before_task(view_.rows[cause], send.start_ns, gap);
    const std::size_t brought = brought_to_relay(send);
    if (brought == kNoRow) return before_producer(producer_of(send), gap);
    take(gap, view_.rows[brought].start_ns, &IdleTime::link_wait);
    const std::size_t before = view_.other_side(brought);
    if (before == kNoRow) return before_producer(kNoRow, gap);
    before_transfer(view_.rows[before], gap);  // one leg nearer to the producer
  }

  /// The receive of the piece that a relay sends on; kNoRow where its rank produced it.
  [[nodiscard]] std::size_t brought_to_relay(const TimelineRow& send) const {
    if (send.replica == send.owner) return kNoRow;
    const MessageLeg before =
        send.leg == MessageLeg::gather ? MessageLeg::wan : MessageLeg::scatter;
    std::size_t latest = kNoRow;
    for (const std::size_t i : receives_.find(send.rank, send.chunk, send.microbatch)) {
      const TimelineRow& row = view_.rows[i];
      const bool same = row.leg == before && row.owner == send.owner && row.piece == send.piece;
      if (same && row.end_ns <= send.start_ns) latest = i;
    }
    return latest;
  }

  /// The rest of a gap: the block whose result it waits for was not computed yet.
  void before_producer(std::size_t producer, IdleGap gap) {
    take(gap, gap.forward_blocked_since, &IdleTime::memory);
    if (producer != kNoRow) {
      const TimelineRow& block = view_.rows[producer];
      const std::int64_t overrun =
          std::max<std::int64_t>(block.end_ns - block.start_ns - block.planned_ns, 0);
      take(gap, std::max(gap.begin, gap.end - std::min(overrun, gap.end - gap.begin)),
           &IdleTime::straggler);
    }
    take(gap, gap.begin, &IdleTime::dependency);
  }

  /// The block whose end made the message ready; kNoRow where none did.
  [[nodiscard]] std::size_t producer_of(const TimelineRow& send) const {
    std::size_t latest = kNoRow;
    for (const std::size_t i : blocks_.find(send.rank, send.chunk, send.microbatch)) {
      const TimelineRow& row = view_.rows[i];
      const bool passes_on =
          row.kind == RowKind::F || row.kind == RowKind::D || row.kind == RowKind::B;
      if (passes_on && row.end_ns <= send.start_ns) latest = i;
    }
    return latest;
  }

  /// Goes on until the last of what the rank does beside its device, by what ends last.
  void after_last_block(std::size_t rank, std::int64_t until) {
    std::array<Beside, 3> beside = beside_[rank];
    std::ranges::stable_sort(beside, std::ranges::greater{}, &Beside::end);
    IdleGap gap{until, view_.end_ns};
    take(gap, std::max(until, beside.front().end), &IdleTime::drained);
    for (std::size_t i = 0; i < beside.size(); ++i)
      take(gap, i + 1 < beside.size() ? std::max(until, beside[i + 1].end) : until, beside[i].part);
  }

  /// The last end of what a rank does beside its device; the iteration's begin where it has none.
  struct Beside {
    std::int64_t end = 0;
    std::int64_t IdleTime::*part = nullptr;
  };
  [[nodiscard]] static std::vector<std::array<Beside, 3>> last_ends(
      const IterationViewOf<Rows>& view) {
    std::vector<std::array<Beside, 3>> last(
        view.blocks.size(),
        {Beside{view.begin_ns, &IdleTime::collective}, Beside{view.begin_ns, &IdleTime::host_task},
         Beside{view.begin_ns, &IdleTime::copy}});
    const auto raise = [&](std::int32_t rank, std::size_t which, std::int64_t end) {
      auto& mine = last[at(rank)][which].end;
      mine = std::max(mine, end);
    };
    for (const auto& part : view.collectives) raise(part.rank, 0, part.end_ns);
    for (const std::size_t kind : {index(TaskKind::host_task), index(TaskKind::copy)})
      for (const std::size_t i : view.tasks[kind]) {
        const TimelineRow& row = view.rows[i];
        raise(row.rank, 1 + kind, row.end_ns);
      }
    return last;
  }

  const IterationViewOf<Rows>& view_;
  RowIndexOf<Rows> index_;
  RowLookupOf<Rows> blocks_, receives_;
  std::vector<std::array<Beside, 3>> beside_ = last_ends(view_);
  IdleTime idle_;
};

}  // namespace longhaul::trace
