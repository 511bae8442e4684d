#include "engine/compute_lane.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/rows.hpp"

namespace longhaul::engine {

ComputeLane::ComputeLane(EngineState& state, Device& device)
    : state_{state}, device_{device}, depth_{to_size(device.depth())} {
  for (const Lane& lane : state_.plan.lanes) {
    if (lane.kind != OpKind::compute || lane.rank != state_.host_ranks.self()) continue;
    first_ = static_cast<std::uint32_t>(index(lane.first));
    end_ = first_ + lane.count;
  }
  next_ = end_;
}

void ComputeLane::begin_iteration() {
  next_ = first_;
  free_ = {};
  free_seen_ = {};
}

bool ComputeLane::advance(TimePoint at) {
  bool moved = false;
  while (!given_.empty()) {
    const auto finished = early_ ? early_ : device_.finished(at);
    if (!finished) break;
    early_.reset();
    if (!finish(*finished, at)) break;
    moved = true;
  }
  while (next_ != end_ && given_.size() < depth_ && can_start(OpId{next_})) {
    start(OpId{next_++}, at);
    moved = true;
  }
  return moved;
}

/// False where the timer of an input has yet to be looked at: the device was quicker.
bool ComputeLane::finish(const FinishedBlock& block, TimePoint at) {
  LONGHAUL_ASSERT(block.op == given_.front().op, "op {} ends before op {}", index(block.op),
                  index(given_.front().op));
  if (!state_.ops.is_ready(block.op)) {
    early_ = block;
    return false;
  }
  const bool stamped = block.start != kNever;
  if (stamped) {
    Cause cause = state_.ops.ready_cause(block.op);
    if (free_.by != kNone<OpId> && free_.until > cause.until) cause = free_;
    // Two clocks disagree by a little: nothing begins before it was given, or before the last end.
    state_.ops.stamped(block.op, given_.front().at, std::max(block.start, free_.until), cause);
  }
  const TimePoint due =
      stamped ? std::max(block.due, state_.ops.times()[index(block.op)].start) : block.due;
  count_credit(block, given_.front().at, stamped ? due : at);
  given_.pop_front();
  free_ = {due, block.op, BoundKind::lane};
  if (!stamped) state_.lateness.add(at - due);
  state_.ops.ended(block.op, stamped ? due : at, due);
  return true;
}

/// Without credit it would have begun when it was given to the device, after all of its causes.
void ComputeLane::count_credit(const FinishedBlock& block, TimePoint given, TimePoint seen) {
  ShadowTime causes = state_.ops.inputs(block.op);
  causes.raise(free_seen_);
  Duration credit{};
  if (block.begin != kNever) {
    const TimePoint start = block.start == kNever ? given : block.start;
    credit = std::max(Duration::zero(), start - block.begin);
    state_.credit.add(credit);
  }
  const Duration lag = causes.lag() + credit;
  state_.ops.set_lag(block.op, lag);
  free_seen_ = {seen, seen + lag};
}

bool ComputeLane::can_start(OpId block) const {
  if (state_.ops.is_ready(block)) return true;
  if (depth_ == 1) return false;
  return std::ranges::all_of(state_.plan.after_of(block), [&](OpId before) {
    return state_.ops.is_done(before) || state_.ops.due(before) != kNever ||
           std::ranges::find(given_, before, &QueuedBlock::op) != given_.end();
  });
}

void ComputeLane::start(OpId block, TimePoint at) {
  Cause cause = state_.ops.ready_cause(block);
  if (free_.by != kNone<OpId> && free_.until > cause.until) cause = free_;
  const double factor =
      plan::block_time_factor(state_.plan, state_.options.run, block, state_.iteration);
  state_.ops.started(block, at, cause);
  if (state_.fault_op == block) inject_fault(*state_.options.fault);
  given_.push_back({block, at});
  const Duration duration = scaled(state_.plan.op(block).duration, factor);
  device_.start(block, begin_of(block, cause, at, duration), duration);
}

/// Work under way delays it until it comes, which may be later than now.
TimePoint ComputeLane::begin_of(OpId block, const Cause& cause, TimePoint at,
                                Duration duration) const {
  TimePoint begin = state_.begin_at(cause, at, duration);
  if (state_.ops.is_ready(block)) return begin;
  for (const OpId before : state_.plan.after_of(block))
    if (!state_.ops.is_done(before) && state_.ops.due(before) != kNever)
      begin = std::max(begin, state_.ops.due(before));
  return begin;
}

}  // namespace longhaul::engine
