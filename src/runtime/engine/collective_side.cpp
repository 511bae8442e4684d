#include "runtime/engine/collective_side.hpp"

#include "base/error.hpp"
#include "base/random.hpp"

namespace longhaul {
namespace {

/// Element `at` of what `member` brings to collective op `first` of its group.
std::int64_t contribution(std::uint64_t seed, OpId first, int iteration, Rank member,
                          std::size_t at) {
  const std::uint64_t draw =
      derived_seed(seed, index(first) << 20U | static_cast<std::uint64_t>(iteration),
                   static_cast<std::uint64_t>(member) << 40U | at);
  return static_cast<std::int64_t>(draw >> 32U);  // sums of 2^31 of them fit
}

}  // namespace

CollectiveSide::CollectiveSide(Core& core) : core_{core} {
  for (std::size_t i = 0; i < core_.plan.lanes.size(); ++i) {
    const Lane& lane = core_.plan.lanes[i];
    if (lane.kind != LaneKind::collective || lane.rank != core_.board.self() || lane.count == 0)
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
      Gathering gathering{core_, members, core_.tags.gathering(2 + core_.plan.op(op).match), op};
      meetings_.push_back(
          std::make_unique<Meeting>(Meeting{op, members, std::move(gathering), {}, {}, {}}));
    }
  }
}

void CollectiveSide::begin_iteration() {
  for (LaneState& state : lanes_) {
    const Lane& lane = core_.plan.lanes[index(state.lane)];
    state.next = static_cast<std::uint32_t>(index(lane.first));
    state.end = state.next + lane.count;
    state.busy = false;
  }
}

bool CollectiveSide::advance(TimePoint at) {
  bool moved = false;
  for (LaneState& lane : lanes_) {
    if (lane.busy || lane.next == lane.end || !core_.ops.is_ready(OpId{lane.next})) continue;
    Meeting& meeting = meeting_of(OpId{lane.next});
    lane.busy = moved = true;
    core_.ops.posted(meeting.op);
    meeting.gathering.enter(at);
    if (meeting.gathering.complete()) begin(meeting, at);
  }
  return moved;
}

void CollectiveSide::gathered(OpId op, TimePoint at) {
  Meeting& meeting = meeting_of(op);
  meeting.gathering.received(at);
  if (meeting.gathering.complete()) begin(meeting, at);
}

void CollectiveSide::begin(Meeting& meeting, TimePoint at) {
  meeting.start = at;
  const Cause& latest = meeting.gathering.latest();
  core_.ops.started(meeting.op, at,
                    latest.by == meeting.op ? core_.ops.ready_cause(meeting.op) : latest);
  fill(meeting);
  core_.expect(core_.transport.collective(core_.plan.op(meeting.op).collective, meeting.members,
                                          meeting.mine, meeting.result),
               Role::collective, meeting.op);
}

void CollectiveSide::fill(Meeting& meeting) const {
  const Op& op = core_.plan.op(meeting.op);
  const std::size_t n = meeting.members.size();
  const std::size_t share =
      std::max<std::size_t>(1, core_.payloads.bytes_for(op.size) / sizeof(std::int64_t) / n);
  meeting.mine.resize(op.collective == CollectiveKind::all_gather ? share : share * n);
  meeting.result.assign(op.collective == CollectiveKind::reduce_scatter ? share : share * n, 0);
  const OpId first = core_.plan.collectives[op.match].front();
  for (std::size_t i = 0; i < meeting.mine.size(); ++i)
    meeting.mine[i] =
        contribution(core_.options.run.seed, first, core_.iteration, core_.board.self(), i);
}

void CollectiveSide::exchanged(OpId id, TimePoint at) {
  Meeting& meeting = meeting_of(id);
  if (!is_right(meeting)) ++core_.checks.corrupted;
  const TimePoint due =
      core_.emulates()
          ? std::max(at, meeting.start + core_.conditions.collective(id, meeting.start))
          : at;
  if (due <= at) return over(id, due, at);
  core_.timers.add(due, id);
  core_.conditions.going_on(id, meeting.start);
}

bool CollectiveSide::is_right(const Meeting& meeting) const {
  const Op& op = core_.plan.op(meeting.op);
  const OpId first = core_.plan.collectives[op.match].front();
  const auto value = [&](Rank member, std::size_t at) {
    return contribution(core_.options.run.seed, first, core_.iteration, member, at);
  };
  const std::size_t share = meeting.result.size() / meeting.members.size();
  std::size_t offset = 0;
  if (op.collective == CollectiveKind::reduce_scatter) {
    const auto self = std::ranges::find(meeting.members, core_.board.self());
    offset = static_cast<std::size_t>(self - meeting.members.begin()) * meeting.result.size();
  }
  for (std::size_t i = 0; i < meeting.result.size(); ++i) {
    std::int64_t expected = 0;
    if (op.collective == CollectiveKind::all_gather) {
      expected = value(meeting.members[i / share], i % share);
    } else {
      for (const Rank member : meeting.members) expected += value(member, offset + i);
    }
    if (meeting.result[i] != expected) return false;
  }
  return true;
}

void CollectiveSide::over(OpId op, TimePoint due, TimePoint at) {
  for (LaneState& lane : lanes_) {
    if (lane.next != index(op)) continue;
    ++lane.next;
    lane.busy = false;
  }
  core_.conditions.over(op);
  core_.ops.ended(op, at, due);
}

CollectiveSide::Meeting& CollectiveSide::meeting_of(OpId op) {
  for (auto& meeting : meetings_)
    if (meeting->op == op) return *meeting;
  LONGHAUL_ASSERT(false, "op {} is no collective of this rank", index(op));
}

}  // namespace longhaul
