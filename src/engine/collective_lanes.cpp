#include "engine/collective_lanes.hpp"

#include "base/error.hpp"

namespace longhaul {
CollectiveLanes::CollectiveLanes(EngineState& core) : core_{core} {
  for (std::size_t i = 0; i < core_.plan.lanes.size(); ++i) {
    const Lane& lane = core_.plan.lanes[i];
    if (lane.kind != OpKind::collective || lane.rank != core_.host_ranks.self() || lane.count == 0)
      continue;
    LaneState state;
    state.lane = LaneId{static_cast<std::uint32_t>(i)};
    lanes_.push_back(state);
    for (std::uint32_t k = 0; k < lane.count; ++k) {
      const OpId op{static_cast<std::uint32_t>(index(lane.first)) + k};
      std::vector<Rank> members;
      for (const OpId member : core_.plan.collectives[core_.plan.op(op).match])
        members.push_back(core_.plan.rank_of(member));
      core_.transport.prepare_group(members);
      ArrivalBarrier gathering{core_, members, core_.tags.gathering(2 + core_.plan.op(op).match),
                               op};
      meetings_.push_back(std::make_unique<CollectiveState>(
          CollectiveState{op, members, std::move(gathering), {}}));
    }
  }
}

void CollectiveLanes::begin_iteration() {
  for (LaneState& state : lanes_) {
    const Lane& lane = core_.plan.lanes[index(state.lane)];
    state.next = static_cast<std::uint32_t>(index(lane.first));
    state.end = state.next + lane.count;
    state.busy = false;
  }
}

bool CollectiveLanes::advance(TimePoint at) {
  bool moved = false;
  for (LaneState& lane : lanes_) {
    if (lane.busy || lane.next == lane.end || !core_.ops.is_ready(OpId{lane.next})) continue;
    CollectiveState& meeting = meeting_of(OpId{lane.next});
    lane.busy = moved = true;
    core_.ops.posted(meeting.op);
    meeting.gathering.enter(at);
    if (meeting.gathering.complete()) begin(meeting, at);
  }
  return moved;
}

void CollectiveLanes::gathered(OpId op, TimePoint at) {
  CollectiveState& meeting = meeting_of(op);
  meeting.gathering.received(at);
  if (meeting.gathering.complete()) begin(meeting, at);
}

void CollectiveLanes::begin(CollectiveState& meeting, TimePoint at) {
  meeting.start = at;
  const Cause& latest = meeting.gathering.latest();
  core_.ops.started(meeting.op, at,
                    latest.by == meeting.op ? core_.ops.ready_cause(meeting.op) : latest);
  core_.posted = meeting.op;
  core_.expect(core_.transport.collective(core_.plan.op(meeting.op).collective, meeting.members,
                                          core_.data_plane.exchange(meeting.op)),
               Role::collective, meeting.op);
}

void CollectiveLanes::exchanged(OpId id, TimePoint at) {
  CollectiveState& meeting = meeting_of(id);
  if (!core_.data_plane.exchanged(id)) ++core_.checks.corrupted;
  const TimePoint due =
      core_.emulates()
          ? std::max(at, meeting.start + core_.conditions.collective(id, meeting.start))
          : at;
  if (due <= at) return over(id, due, at);
  core_.timers.add(due, id);
  core_.ops.will_end(id, due);
  core_.conditions.going_on(id, meeting.start);
}

void CollectiveLanes::over(OpId op, TimePoint due, TimePoint at) {
  for (LaneState& lane : lanes_) {
    if (lane.next != index(op)) continue;
    ++lane.next;
    lane.busy = false;
  }
  core_.conditions.over(op);
  core_.ops.ended(op, at, due);
}

CollectiveLanes::CollectiveState& CollectiveLanes::meeting_of(OpId op) {
  for (auto& meeting : meetings_)
    if (meeting->op == op) return *meeting;
  LONGHAUL_ASSERT(false, "op {} is no collective of this rank", index(op));
}

}  // namespace longhaul
