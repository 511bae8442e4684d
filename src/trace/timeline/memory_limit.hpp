#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "trace/timeline/iteration_view.hpp"

namespace longhaul::trace {

/// Forwards of one rank that lie ahead: the earliest arrival among those above a size. Kept are
/// only those that no larger one precedes, so arrivals grow with sizes.
class ForwardsAhead {
public:
  void add(std::int64_t size_bytes, std::int64_t arrival_ns) {
    auto at = by_size_.lower_bound(size_bytes);
    if (at != by_size_.end() && at->second <= arrival_ns) return;
    while (at != by_size_.begin() && std::prev(at)->second >= arrival_ns)
      at = by_size_.erase(std::prev(at));
    if (at == by_size_.end() || at->first != size_bytes)
      at = by_size_.emplace_hint(at, size_bytes, arrival_ns);
    at->second = arrival_ns;
  }
  [[nodiscard]] std::int64_t earliest_above(std::int64_t size_bytes) const {
    const auto at = by_size_.upper_bound(size_bytes);
    return at == by_size_.end() ? kNever : at->second;
  }

private:
  std::map<std::int64_t, std::int64_t> by_size_;
};

/// Does the receive bring its rank something of its own, not what it relays for another?
[[nodiscard]] inline bool is_own(const TimelineRow& receive) {
  return receive.owner == receive.replica && receive.leg != MessageLeg::scatter;
}

/// When the input of a forward was there: received with all its pieces, or computed by the rank
/// itself.
template <typename Rows>
[[nodiscard]] std::int64_t arrival_of_input(const IterationViewOf<Rows>& view,
                                            const RowLookupOf<Rows>& blocks,
                                            const RowLookupOf<Rows>& receives,
                                            const TimelineRow& forward) {
  if (forward.chunk <= 0) return view.begin_ns;
  const std::int32_t producer = forward.chunk - 1;
  // A gradient may share the name; it comes later than the activation.
  std::int32_t pieces = 0;
  for (const std::size_t i : receives.find(forward.rank, producer, forward.microbatch)) {
    const TimelineRow& receive = view.rows[i];
    if (is_own(receive) && ++pieces == receive.pieces) return receive.end_ns;
  }
  std::int64_t computed = kNever;
  for (const std::size_t i : blocks.find(forward.rank, producer, forward.microbatch)) {
    const TimelineRow& block = view.rows[i];
    if (block.kind == RowKind::F) computed = block.end_ns;
  }
  return computed;
}

/// For each block of a rank: since when a forward after it in the row had its input, but would not
/// have fit into the activation budget in the gap before the block; kNever if there is none.
/// `blocks` and `receives` find those of all ranks.
template <typename Rows>
[[nodiscard]] std::vector<std::int64_t> blocked_forwards_since(
    const IterationViewOf<Rows>& view, std::size_t rank, const RowLookupOf<Rows>& blocks,
    const RowLookupOf<Rows>& receives, std::int64_t activation_budget_bytes) {
  std::vector<std::int64_t> since(view.blocks[rank].size(), kNever);
  if (activation_budget_bytes <= 0) return since;
  const std::vector<std::int64_t> memory = memory_in_gaps(view, rank);
  ForwardsAhead ahead;
  for (std::size_t k = since.size(); k-- > 0;) {
    since[k] = ahead.earliest_above(saturating_sum(activation_budget_bytes, -memory[k]));
    const TimelineRow& row = view.rows[view.blocks[rank][k]];
    if (row.kind == RowKind::F && row.size_bytes > 0)
      ahead.add(row.size_bytes, arrival_of_input(view, blocks, receives, row));
  }
  return since;
}

}  // namespace longhaul::trace
