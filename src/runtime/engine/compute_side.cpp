#include "runtime/engine/compute_side.hpp"

#include "plan/rows.hpp"

namespace longhaul {

ComputeSide::ComputeSide(Core& core, Device& device) : core_{core}, device_{device} {
  for (const Lane& lane : core_.plan.lanes) {
    if (lane.kind != LaneKind::compute || lane.rank != core_.board.self()) continue;
    first_ = static_cast<std::uint32_t>(index(lane.first));
    end_ = first_ + lane.count;
  }
  next_ = end_;
}

void ComputeSide::begin_iteration() {
  next_ = first_;
  free_ = {};
}

bool ComputeSide::advance(TimePoint at) {
  bool moved = false;
  if (busy_) {
    const auto finished = device_.finished(at);
    if (!finished) return false;
    busy_ = false;
    moved = true;
    free_ = {finished->due, finished->op, BoundKind::lane};
    core_.ops.ended(finished->op, at, finished->due);
  }
  if (next_ == end_ || !core_.ops.is_ready(OpId{next_})) return moved;
  start(OpId{next_++}, at);
  return true;
}

void ComputeSide::start(OpId block, TimePoint at) {
  Cause cause = core_.ops.ready_cause(block);
  if (free_.by != kNone<OpId> && free_.until > cause.until) cause = free_;
  const Lane& lane = core_.plan.lane_of(block);
  const double factor = block_time_factor(
      core_.options.run, core_.plan.ranks[index(lane.rank)].device, block, core_.iteration);
  busy_ = true;
  core_.ops.started(block, at, cause);
  if (core_.struck == block) strike(*core_.options.fault);
  device_.start(block, core_.begin_at(cause, at), scaled(core_.plan.op(block).duration, factor));
}

}  // namespace longhaul
