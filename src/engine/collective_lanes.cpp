#include "engine/collective_lanes.hpp"

#include "base/error.hpp"

namespace longhaul::engine {
CollectiveLanes::CollectiveLanes(EngineState& state)
    : state_{state},
      lanes_{
          make_cursors<CollectiveCursor>(state.plan, state.host_ranks.self(), OpKind::collective)} {
  for (const CollectiveCursor& cursor : lanes_) {
    const Lane& lane = state_.plan.lanes[index(cursor.lane)];
    for (std::uint32_t k = 0; k < lane.count; ++k) {
      const OpId op{static_cast<std::uint32_t>(index(lane.first)) + k};
      std::vector<Rank> members;
      for (const OpId member : state_.plan.collectives[state_.plan.op(op).match])
        members.push_back(state_.plan.rank_of(member));
      state_.transport.prepare_group(members);
      ArrivalBarrier barrier{state_, members, state_.tags.barrier(2 + state_.plan.op(op).match),
                             op};
      states_.push_back(std::make_unique<CollectiveState>(
          CollectiveState{op, members, std::move(barrier), {}, {}}));
    }
  }
}

void CollectiveLanes::begin_iteration() {
  for (CollectiveCursor& lane : lanes_) {
    lane.rewind(state_.plan);
    lane.busy = false;
    lane.free = {};
    lane.free_seen = {};
  }
}

bool CollectiveLanes::advance(TimePoint at) {
  bool moved = false;
  for (CollectiveCursor& lane : lanes_) {
    if (lane.busy || lane.next == lane.end || !state_.ops.is_ready(OpId{lane.next})) continue;
    CollectiveState& collective = state_of(OpId{lane.next});
    lane.busy = moved = true;
    state_.ops.posted(collective.op);
    collective.cause = state_.ops.ready_cause(collective.op);
    collective.cause.raise(lane.free.until, lane.free.by, lane.free.kind);
    ShadowTime causes = state_.ops.inputs(collective.op);
    causes.raise(lane.free_seen);
    collective.barrier.enter(at, causes.lag());
    if (collective.barrier.complete()) begin(collective, at);
  }
  return moved;
}

void CollectiveLanes::gathered(OpId op, TimePoint at) {
  CollectiveState& collective = state_of(op);
  collective.barrier.received(at);
  if (collective.barrier.complete()) begin(collective, at);
}

void CollectiveLanes::begin(CollectiveState& collective, TimePoint at) {
  collective.start = at;
  state_.ops.set_lag(collective.op, collective.barrier.lag());
  const Cause& latest = collective.barrier.latest();
  state_.ops.started(collective.op, at, latest.by == collective.op ? collective.cause : latest);
  state_.posted = collective.op;
  state_.expect(
      state_.transport.collective(state_.plan.op(collective.op).collective, collective.members,
                                  state_.data_plane.exchange(collective.op)),
      Role::collective, collective.op);
}

void CollectiveLanes::exchanged(OpId id, TimePoint at) {
  CollectiveState& collective = state_of(id);
  if (!state_.data_plane.exchanged(id)) ++state_.checks.corrupted;
  const TimePoint due =
      state_.emulates()
          ? std::max(at, collective.start + state_.conditions.collective(id, collective.start))
          : at;
  if (due <= at) return over(id, due, at);
  state_.timers.add(due, id);
  state_.ops.will_end(id, due);
  state_.conditions.going_on(id, collective.start);
}

void CollectiveLanes::over(OpId op, TimePoint due, TimePoint at) {
  for (CollectiveCursor& lane : lanes_) {
    if (lane.next != index(op)) continue;
    ++lane.next;
    lane.busy = false;
    lane.free = {due, op, BoundKind::lane};
    lane.free_seen = {at, at + state_of(op).barrier.lag()};
  }
  state_.conditions.over(op);
  state_.ops.ended(op, at, due);
}

CollectiveLanes::CollectiveState& CollectiveLanes::state_of(OpId op) {
  for (auto& collective : states_)
    if (collective->op == op) return *collective;
  LONGHAUL_ASSERT(false, "op {} is no collective of this rank", index(op));
}

}  // namespace longhaul::engine
