#pragma once

#include <cstdint>

#include "base/index.hpp"
#include "sim/events/event_driver.hpp"

// The steps that every op takes, for the sources of EventDriver: inlined into its loops.
namespace longhaul::sim {

/// Fixes when an op is ready, where that is known; false: it waits for a dependency, or does not
/// run.
inline bool EventDriver::post(std::uint32_t id, std::uint32_t waiter) {
  const std::uint32_t base = instances_.base(id);
  Bound bound;
  if (op(id).after_count > 0) {
    for (const OpId before : plan_.after_of(instances_.id(id))) {
      const auto cause = static_cast<std::uint32_t>(index(before));
      const Duration end = time(base + cause).end;
      if (end < Duration::zero()) return wait_for(base + cause, id, waiter);
      bound.raise(end, cause, BoundKind::dependency);
    }
  }
  if (noted_) [[unlikely]]
    if (!post_rest(id, waiter, bound)) return false;
  time(id).ready = bound.until;
  time(id).bound_by = OpId{bound.by};
  time(id).bound_kind = bound.kind;
  return true;
}

/// The cause that binds a posted op, its lane and what that alone holds included.
inline EventDriver::Bound EventDriver::bound_of(std::uint32_t id) const {
  const Op& own = op(id);
  const LaneState& lane = lanes_[index(own.lane)];
  const OpTime& posted = time(id);
  Bound bound{posted.ready, static_cast<std::uint32_t>(index(posted.bound_by)), posted.bound_kind};
  if (own.kind == OpKind::send) {
    const OpTime& other = time(other_side(id));
    bound.raise(other.ready, own.match, BoundKind::rendezvous);
    const LaneState& receiving = lanes_[lane_of(other_side(id))];
    bound.raise(receiving.last_start, receiving.last, BoundKind::lane);
  }
  if (access(own) != Access::own && own.kind != OpKind::collective)
    bound.raise(lane.last_start, lane.last, BoundKind::lane);
  else
    bound.raise(lane.free, lane.last,
                own.kind == OpKind::send ? BoundKind::resource : BoundKind::lane);
  return bound;
}

/// Fills in the op's times, moves its lane on and wakes what waits for the op.
inline void EventDriver::finish(std::uint32_t id, Duration hold_end, Duration end,
                                const Bound& bound) {
  OpTime& own = time(id);
  const auto waiting = static_cast<std::uint32_t>(own.start.count());
  own.start = bound.until;
  own.end = end;
  own.bound_by = OpId{bound.by};
  own.bound_kind = bound.kind;
  LaneState& lane = lanes_[lane_of(id)];
  if (lane.way == Way::in_turn) [[likely]] {
    lane.last_start = bound.until;
    lane.free = hold_end;
    lane.last = instances_.op(id);
    ++lane.next;
  }
  if (noted_) [[unlikely]] {
    instances_.settle(id);
    note_start(id, bound.until);
    note_end(id, hold_end, end);
  }
  if (waiting != kNoWaiter) wake(waiting);
}

/// Gives back until when it holds its resources.
inline Duration EventDriver::run_transfer(std::uint32_t send, const Bound& bound) {
  const std::uint32_t recv = other_side(send);
  const Duration hold_end = bound.until + hold_time(send, bound.until);
  const Duration arrives = hold_end + latency(recv, hold_end);
  // A receive that was posted last keeps its own cause; otherwise it waited for the send.
  Bound arrival{bound.until, instances_.op(send), BoundKind::dependency};
  if (bound.kind == BoundKind::rendezvous) {
    arrival.by = static_cast<std::uint32_t>(index(time(recv).bound_by));
    arrival.kind = time(recv).bound_kind;
  }
  finish(send, hold_end, hold_end, bound);
  finish(recv, hold_end, arrives, arrival);
  return hold_end;
}

}  // namespace longhaul::sim
