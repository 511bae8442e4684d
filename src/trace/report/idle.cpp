#include <algorithm>
#include <array>

#include "base/index.hpp"
#include "trace/report/report.hpp"
#include "trace/timeline/iteration_view.hpp"

namespace longhaul::trace {
namespace {

constexpr std::array kParts{
    IdlePart{"dependency", &IdleTime::dependency}, IdlePart{"link_wait", &IdleTime::link_wait},
    IdlePart{"link_busy", &IdleTime::link_busy},   IdlePart{"rendezvous", &IdleTime::rendezvous},
    IdlePart{"memory", &IdleTime::memory},         IdlePart{"straggler", &IdleTime::straggler},
    IdlePart{"collective", &IdleTime::collective}, IdlePart{"drained", &IdleTime::drained}};

/// Part of a device's idle time, from `begin` up to `end`.
struct Gap {
  std::int64_t begin = 0, end = 0;
  std::int64_t forward_blocked_since = kNever;
};

/// Walks back from the block after each gap. Every step takes the latest piece of what is left of
/// the gap, so that the pieces add up to it.
class Attribution {
public:
  explicit Attribution(const IterationView& view)
      : view_{view},
        index_{view.rows},
        blocks_{view.rows, RowLookup::Of::blocks},
        receives_{view.rows, RowLookup::Of::receives} {}

  IdleTime run(std::int64_t activation_budget_bytes) {
    const auto since = blocked_forwards_since(view_, activation_budget_bytes);
    for (std::size_t rank = 0; rank < view_.blocks.size(); ++rank) {
      std::int64_t until = view_.begin_ns;
      for (std::size_t k = 0; k < view_.blocks[rank].size(); ++k) {
        const TimelineRow& block = view_.rows[view_.blocks[rank][k]];
        const std::int64_t start = view_.clamped(block.start_ns);
        if (start > until) before_block(block, {until, start, since[rank][k]});
        until = std::max(until, view_.clamped(block.end_ns));
      }
      after_last_block(rank, until);
    }
    return idle_;
  }

private:
  /// Gives the time after `from` to `part`, and takes it off the gap.
  void take(Gap& gap, std::int64_t from_ns, std::int64_t IdleTime::*part) {
    const std::int64_t from = std::clamp(from_ns, gap.begin, gap.end);
    idle_.*part += gap.end - from;
    gap.end = from;
  }

  void before_block(const TimelineRow& block, Gap gap) {
    const std::size_t at = index_.find(block.bound_by);
    if (at == kNoRow) return before_producer(nullptr, gap);
    const TimelineRow& cause = view_.rows[at];
    if (is_collective(cause.kind)) return take(gap, gap.begin, &IdleTime::collective);
    if (cause.kind != RowKind::recv && cause.kind != RowKind::send)
      return before_producer(nullptr, gap);
    // Its input on the wire or, in plans whose blocks depend on sends, its own message.
    take(gap, cause.start_ns, &IdleTime::link_wait);
    const std::size_t send = cause.kind == RowKind::send ? at : view_.other_side[at];
    if (send == kNoRow) return before_producer(nullptr, gap);
    before_transfer(view_.rows[send], gap);
  }

  void before_transfer(const TimelineRow& send, Gap gap) {
    const bool paired = send.bound_kind == BoundKind::rendezvous;
    take(gap, send.ready_ns, paired ? &IdleTime::rendezvous : &IdleTime::link_busy);
    const std::size_t brought = brought_to_relay(send);
    if (brought == kNoRow) return before_producer(producer_of(send), gap);
    take(gap, view_.rows[brought].start_ns, &IdleTime::link_wait);
    const std::size_t before = view_.other_side[brought];
    if (before == kNoRow) return before_producer(nullptr, gap);
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
  void before_producer(const TimelineRow* producer, Gap gap) {
    take(gap, gap.forward_blocked_since, &IdleTime::memory);
    if (producer != nullptr) {
      const std::int64_t overrun =
          std::max<std::int64_t>(producer->end_ns - producer->start_ns - producer->planned_ns, 0);
      take(gap, std::max(gap.begin, gap.end - std::min(overrun, gap.end - gap.begin)),
           &IdleTime::straggler);
    }
    take(gap, gap.begin, &IdleTime::dependency);
  }

  /// The block whose end made the message ready.
  [[nodiscard]] const TimelineRow* producer_of(const TimelineRow& send) const {
    const TimelineRow* latest = nullptr;
    for (const std::size_t i : blocks_.find(send.rank, send.chunk, send.microbatch)) {
      const TimelineRow& row = view_.rows[i];
      const bool passes_on =
          row.kind == RowKind::F || row.kind == RowKind::D || row.kind == RowKind::B;
      if (passes_on && row.end_ns <= send.start_ns) latest = &row;
    }
    return latest;
  }

  void after_last_block(std::size_t rank, std::int64_t until) {
    Gap gap{until, view_.end_ns};
    take(gap, std::max(until, last_collective_[rank]), &IdleTime::drained);
    take(gap, until, &IdleTime::collective);
  }

  const IterationView& view_;
  RowIndex index_;
  RowLookup blocks_, receives_;
  std::vector<std::int64_t> last_collective_ = last_collectives();  ///< end, of each rank
  IdleTime idle_;

  [[nodiscard]] std::vector<std::int64_t> last_collectives() const {
    std::vector<std::int64_t> last(view_.blocks.size(), view_.begin_ns);
    for (const TimelineRow& row : view_.rows) {
      auto& mine = last[at(row.rank)];
      if (is_collective(row.kind)) mine = std::max(mine, row.end_ns);
    }
    return last;
  }
};

}  // namespace

std::span<const IdlePart> idle_parts() { return kParts; }

std::int64_t IdleTime::total() const {
  std::int64_t sum = 0;
  for (const IdlePart& part : kParts) sum += this->*part.member;
  return sum;
}

IdleTime attribute_idle(const IterationView& view, std::int64_t activation_budget_bytes) {
  return Attribution{view}.run(activation_budget_bytes);
}

IdleTime attribute_idle(std::span<const TimelineRow> rows, std::int64_t activation_budget_bytes) {
  return attribute_idle(IterationView{rows}, activation_budget_bytes);
}

}  // namespace longhaul::trace
