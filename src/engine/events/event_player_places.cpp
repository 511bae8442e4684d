// What ends earlier than planned (real work, a block that noise makes quicker) leaves its device to
// what has a place after it; what ends later holds that up.
#include <algorithm>
#include <map>

#include "base/index.hpp"
#include "engine/events/event_player.hpp"

namespace longhaul::engine {

void EventPlayer::find_lone_sets() {
  const std::size_t sets = plan_.set_begin.empty() ? 0 : plan_.set_begin.size() - 1;
  std::vector<int> uses(plan_.resources.size(), 0);
  for (const ResourceId held : plan_.set_items) ++uses[index(held)];
  lone_set_.assign(sets, true);
  for (std::size_t set = 0; set < sets; ++set)
    for (std::uint32_t i = plan_.set_begin[set]; i < plan_.set_begin[set + 1]; ++i)
      if (uses[index(plan_.set_items[i])] > 1) lone_set_[set] = false;
}

/// Of a device that this rank alone uses, in order of readiness, one op at a time.
bool EventPlayer::keeps_places(const OpInstance& op) const {
  const Op& own = plan_.op(op.op);
  const auto held = plan_.resources_of(op.op);
  if (std::ranges::any_of(
          held, [&](ResourceId each) { return plan_.resources[index(each)].capacity > 1; }))
    return false;
  return own.kind == OpKind::compute && facts_.access_of(own) == Access::request &&
         lone_set_[index(own.resources)] && !shared_set_[index(own.resources)];
}

void EventPlayer::note_place(OpInstance& op, TimePoint from, Duration takes, const Cause& cause) {
  places_.push_back({&op, from, takes, cause});
}

/// Gives places after it anew, in their order. One that was to begin in a while may begin now.
void EventPlayer::move_places_up(const OpInstance& op, TimePoint due, TimePoint at) {
  if (!keeps_places(op)) return;
  const ResourceSetId set = plan_.op(op.op).resources;
  own_->free_from(op.op, due);
  for (const RunningBlock& other : running_)
    if (plan_.op(other.op->op).resources == set)
      (void)own_->serve(other.op->op, due, [&](TimePoint) { return other.planned_end; });
  std::map<LaneId, TimePoint> begins;  // of what stands before on the same lane
  std::vector<OpInstance*> now;
  for (const Place& place : places_) {
    OpInstance& waits = *place.op;
    if (plan_.op(waits.op).resources != set) continue;
    LaneState& lane = lane_of(waits.op);
    TimePoint from = place.from;
    if (const auto before = begins.find(lane.id); before != begins.end())
      from = std::max(from, before->second);
    const auto free = own_->serve(waits.op, from, [&](TimePoint start) {
      from = start;
      return start + place.takes;
    });
    begins[lane.id] = from;
    waits.cause = place.cause;
    waits.cause.raise(free->at, free->holder, BoundKind::resource);
    if (const auto decided = std::ranges::find(decided_, &waits, &Decided::op);
        decided != decided_.end()) {
      decided->start = from;
      continue;
    }
    if (from >= waits.time.start) continue;
    const bool held_back = std::ranges::find(held_back_, &waits) != held_back_.end();
    timers_.drop_begin(waits);
    waits.time.start = from;
    if (lane.last == waits.op) lane.last_start = from;
    if (held_back) continue;  // it begins as soon as it can
    if (from > at)
      set_timer(from, Timer::Kind::begin, waits);
    else
      now.push_back(&waits);
  }
  for (OpInstance* const each : now) begin_op(*each, at);
}

/// What should have begun on the device before it was over waited for it; optional blocks that
/// would miss their deadlines now do not begin. Has one left its place to what comes after it?
bool EventPlayer::leave_late(const OpInstance& op, TimePoint due, TimePoint at) {
  const auto held = plan_.resources_of(op.op);
  return std::erase_if(held_back_, [&](OpInstance* const waits) {
           const auto needed = plan_.resources_of(waits->op);
           if (due <= waits->time.start || std::ranges::find_first_of(needed, held) == needed.end())
             return false;
           waits->cause.raise(due, op.op, BoundKind::resource);
           if (!facts_.is_optional(waits->op) || plan_.op(waits->op).kind != OpKind::compute ||
               !misses_deadline(*waits, due, at))
             return false;
           abandon(*waits, at);
           return true;
         }) > 0;
}

/// Skips a block that has a place and has not begun.
void EventPlayer::abandon(OpInstance& op, TimePoint at) {
  std::erase_if(places_, [&](const Place& place) { return place.op == &op; });
  if (op.holds) let_go(op, at);
  --in_progress_;
  op.stage = Stage::skipped;
  op.outcome = Outcome::skipped;
  op.time = {};
  moves_ = true;
  tell_skipped(op, at);
}

}  // namespace longhaul::engine
