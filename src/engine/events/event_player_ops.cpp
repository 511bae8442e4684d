// An op from when its lane reaches it to its end.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "engine/events/event_player.hpp"
#include "plan/rows.hpp"

namespace longhaul::engine {

void EventPlayer::admit(OpInstance& op, TimePoint at) {
  op.stage = Stage::admitted;
  op.cause = {began_, kNone<OpId>, BoundKind::start};
  op.time.ready = began_;
  const OpKind kind = plan_.op(op.op).kind;
  if (kind == OpKind::send || kind == OpKind::recv) open_message(op);
  expect_give_up(op, at);
}

/// Brings an admitted op as far as it goes.
bool EventPlayer::bring(OpInstance& op, TimePoint at) {
  bool moved = false;
  if (op.stage == Stage::admitted) moved = post(op, at);
  if (op.stage == Stage::posted) moved = ask(op, at) || moved;
  return moved;
}

/// Once all before it has ended it is ready, or will be at a known time. Where some of that does
/// not run, nor does it: at once, whatever else it waits for.
bool EventPlayer::post(OpInstance& op, TimePoint at) {
  bool waits = false, hopeless = false;
  TimePoint ready = began_;
  Cause cause = op.cause;
  const auto look = [&](OpId before, Stage stage, TimePoint ended, TimePoint due) {
    hopeless = hopeless || stage == Stage::skipped;
    waits = waits || stage != Stage::ended;
    ready = std::max(ready, ended);
    cause.raise(due, before, BoundKind::dependency);
  };
  for (const OpId before : plan_.after_of(op.op)) {
    const OpInstance& other = live_.at(before, op.iteration);
    look(before, other.stage, other.time.end, other.cause.until);
  }
  for (const plan::FarDependency& far : facts_.far_of(op.op)) {
    const int from = op.iteration - far.iterations_back;
    if (far.strength == plan::Strength::weak || from < stream_.first) continue;
    if (live_.is_mine(far.before)) {
      const OpInstance& other = live_.at(far.before, from);
      look(far.before, other.stage, other.time.end, other.cause.until);
    } else if (const RemoteEnd* const found = remote_end(far.before, from)) {
      look(far.before, found->skipped ? Stage::skipped : Stage::ended, found->at, found->at);
    } else {
      waits = true;
    }
  }
  if (hopeless) return skip(op, Outcome::skipped, at), true;
  if (waits) return false;
  if (facts_.is_optional(op.op)) {
    if (const auto window = facts_.windows.find(op.op); window != facts_.windows.end()) {
      const auto begun = begun_.find(op.iteration);
      if (begun == begun_.end()) return false;
      ready = std::max(ready, begun->second + window->second.not_before);
      cause.raise(ready, kNone<OpId>, BoundKind::start);
    }
  }
  op.time.ready = ready;
  op.cause = cause;
  op.stage = Stage::posted;
  if (plan_.op(op.op).kind == OpKind::recv) {
    note(op.op, comm::OpEvent::posted);
    if (facts_.with_word[index(plan_.op(op.op).lane)]) tell_sender(op, false, at);
  }
  return true;
}

/// A posted op asks for what it holds, or starts, where that is its lane's alone.
bool EventPlayer::ask(OpInstance& op, TimePoint at) {
  const Op& own = plan_.op(op.op);
  if (own.kind == OpKind::recv) return false;
  TimePoint from = op.time.ready;
  if (own.kind == OpKind::send && facts_.needs_go_ahead(own, plan_)) {
    if (op.other_ready == kNever) return false;
    from = std::max(from, op.other_ready);
    op.cause.raise(op.other_ready, OpId{own.match}, BoundKind::rendezvous);
  }
  const bool alone = facts_.access_of(own) == Access::own;
  if (alone) from = std::max(from, op.other_lane);
  if (from > at) {
    if (op.wakes != from) set_timer(from, Timer::Kind::wake, op);
    op.wakes = from;
    return false;
  }
  if (!alone) {
    op.stage = Stage::arrived;
    asked_.push_back(&op);
    return true;
  }
  LaneState& lane = lane_of(op.op);
  if (lane.busy) return false;
  op.cause.raise(lane.free, lane.last,
                 own.kind == OpKind::send ? BoundKind::resource : BoundKind::lane);
  start(op, at, at);
  return true;
}

/// When it starts is fixed: now, or later by a timer.
void EventPlayer::start(OpInstance& op, TimePoint start, TimePoint at) {
  LaneState& lane = lane_of(op.op);
  op.stage = Stage::served;
  op.time.start = start;
  ++in_progress_;
  moves_ = true;
  if (lane.way == Way::in_turn ||
      (lane.way == Way::pool && lane.serve == Serve::order && !facts_.is_optional(op.op))) {
    lane.last_start = std::max(lane.last_start, start);
    lane.last = op.op;
  }
  if (lane.way == Way::in_turn && facts_.access_of(plan_.op(op.op)) == Access::own)
    lane.busy = true;
  leave(op);
  const Duration later = std::max(Duration::zero(), start - at);
  if (plan_.op(op.op).kind == OpKind::send) tell_receiver(op, later, false);
  if (later > Duration::zero())
    set_timer(start, Timer::Kind::begin, op);
  else
    begin_op(op, at);
}

/// Does a block or a send of this rank that began late, or is to begin late, or whose end has not
/// been seen, still have what the op was planned to have?
bool EventPlayer::must_wait(const OpInstance& op) const {
  if (plan_.op(op.op).kind == OpKind::recv) return false;
  return std::ranges::any_of(plan_.resources_of(op.op), [&](ResourceId needed) {
    const auto holds = [&](const OpInstance& other) {
      const auto held = plan_.resources_of(other.op);
      return std::ranges::find(held, needed) != held.end();
    };
    std::size_t late = 0, holders = 0;
    const auto count = [&](const OpInstance& other, bool is_late) {
      if (!holds(other)) return;
      ++holders;
      late += is_late ? 1 : 0;
    };
    for (const OpInstance* const other : held_back_) count(*other, true);
    for (const SendUnderWay& send : sending_) count(*send.op, send.planned_end <= op.time.start);
    for (const RunningBlock& block : running_) count(*block.op, block.planned_end <= op.time.start);
    return late > 0 && holders >= plan_.resources[index(needed)].capacity;
  });
}

void EventPlayer::begin_op(OpInstance& op, TimePoint at) {
  if (must_wait(op)) {
    held_back_.push_back(&op);
    return;
  }
  std::erase_if(places_, [&](const Place& place) { return place.op == &op; });
  const TimePoint planned = op.time.start;
  // A receive begins with its transfer, however late its timer is heard: the next one may be.
  if (plan_.op(op.op).kind != OpKind::recv) op.time.start = at;
  op.time.bound_by = op.cause.by;
  op.time.bound_kind = op.cause.kind;
  note(op.op, comm::OpEvent::started);
  if (!facts_.windows.empty() && !facts_.is_optional(op.op) && !begun_.contains(op.iteration)) {
    begin_windows(op.iteration, at);
    publish(OpNews::Kind::begun, op.op, op.iteration, at);
  }
  for (const plan::FarDependency& far : facts_.far_of(op.op)) {
    if (far.strength == plan::Strength::strong) continue;
    live_.expect_more(op);
    unmet_.push_back(&op);
  }
  const Op& own = plan_.op(op.op);
  // By the host's clock what ends later has a later stamp: what it meets is known.
  if (virtual_clock() == nullptr && !unmet_.empty()) {
    meet_versions();
    if (own.kind == OpKind::compute) device_.meets(op.op, op.version);
  }
  const bool strikes = state_.fault_op == op.op &&
                       state_.options.fault->iteration == first_iteration_ + op.iteration;
  if (strikes) inject_fault(*state_.options.fault);
  if (own.kind == OpKind::recv) return;
  if (own.kind == OpKind::send) {
    if (facts_.access_of(own) == Access::request)
      sending_.push_back({&op, planned + hold_time(op.op, op.iteration, planned)});
    return send_payload(op, strikes, at);
  }
  const plan::Draw* const drawn = draw_of(op.op);
  const double factor = drawn != nullptr && drawn->takes
                            ? 1.0
                            : plan::block_time_factor(plan_, state_.options.run, op.op,
                                                      first_iteration_ + op.iteration);
  const Duration duration = scaled(duration_of(op.op, op.iteration), factor);
  const TimePoint begin = state_.begin_at(op.cause, at, duration);
  running_.push_back({&op, begin + duration, planned + duration_of(op.op, op.iteration)});
  device_.start(op.op, begin, duration);
}

void EventPlayer::end(OpInstance& op, TimePoint due, TimePoint at) {
  op.stage = Stage::ended;
  --in_progress_;
  op.time.end = at;
  op.cause.until = due;
  note(op.op, comm::OpEvent::ended);
  state_.host_ranks.mine().progress.store(at.count(), std::memory_order_relaxed);
  moves_ = true;
  LaneState& lane = lane_of(op.op);
  if (plan_.op(op.op).kind != OpKind::recv) {
    std::erase_if(sending_, [&](const SendUnderWay& send) { return send.op == &op; });
    if (lane.way == Way::in_turn) {
      lane.busy = false;
      lane.free = due;
    }
    if (op.holds) let_go(op, due);
    if (lane.way == Way::sourced)
      if (auto* const entry = sources_.of_lane(lane.id); entry->drawn == &op) {
        entry->drawn = nullptr;
        entry->state = Sources::State::due;
      }
  }
  if (due > op.deadline) op.outcome = Outcome::late;
  if (op.message != nullptr) close(op);
  const plan::Draw* const drawn = draw_of(op.op);
  note_end(op.op, op.iteration, at, drawn == nullptr ? plan::DrawnWords{} : drawn->words);
  publish(OpNews::Kind::ended, op.op, op.iteration, at);
  live_.settle(op);
}

void EventPlayer::skip(OpInstance& op, Outcome outcome, TimePoint at) {
  if (op.stage >= Stage::served) return;
  const Op& own = plan_.op(op.op);
  const bool message = own.kind == OpKind::send || own.kind == OpKind::recv;
  if (message && op.message == nullptr) open_message(op);
  if (op.stage == Stage::arrived) forget_asked(op);
  op.stage = Stage::skipped;
  op.outcome = outcome;
  op.time = {};
  moves_ = true;
  leave(op);
  if (own.kind == OpKind::send) tell_receiver(op, {}, true);
  if (own.kind == OpKind::recv && facts_.with_word[index(own.lane)]) tell_sender(op, true, at);
  if (message) close(op);
  tell_skipped(op, at);
}

void EventPlayer::tell_skipped(OpInstance& op, TimePoint at) {
  LaneState& lane = lane_of(op.op);
  if (lane.way == Way::sourced)
    if (auto* const entry = sources_.of_lane(lane.id); entry->drawn == &op) {
      entry->drawn = nullptr;
      entry->state = Sources::State::due;
    }
  publish(OpNews::Kind::skipped, op.op, op.iteration, at);
  live_.settle(op);
}

/// Of a lane that is not in turn, `op` starts or will not run: what waited for it goes on.
void EventPlayer::leave(OpInstance& op) {
  LaneState& lane = lane_of(op.op);
  if (lane.way != Way::pool || op.iteration != lane.iteration) return;
  --lane.open_all;
  if (!facts_.is_optional(op.op)) --lane.open_mandatory;
  if (lane.awaited == &op) lane.awaited = nullptr;
  moves_ = true;
}

/// The nanosecond after the last in which it could start: it is given up then. Where deadlines move
/// no one knows which that is.
void EventPlayer::expect_give_up(const OpInstance& op, TimePoint at) {
  if (deadlines_.moves()) return;
  const auto window = facts_.windows.find(op.op);
  if (window == facts_.windows.end() || window->second.deadline == plan::kNoDeadline) return;
  const auto begun = begun_.find(op.iteration);
  if (begun == begun_.end()) return;
  const Duration takes =
      weather_.weather == nullptr ? duration_of(op.op, op.iteration) : Duration::zero();
  const TimePoint last = begun->second + window->second.deadline - takes;
  set_timer(std::max(last + Duration{1}, at), Timer::Kind::give_up, op);
}

void EventPlayer::give_up(OpInstance& op, TimePoint at) {
  if (op.stage == Stage::away || op.stage >= Stage::served) return;
  if (std::ranges::find(decided_, &op, &Decided::op) != decided_.end()) return;
  const auto window = facts_.windows.find(op.op);
  const auto begun = begun_.find(op.iteration);
  if (begun == begun_.end()) return;
  const Duration takes =
      weather_.weather == nullptr ? duration_of(op.op, op.iteration) : Duration::zero();
  if (at + takes > begun->second + window->second.deadline) skip(op, Outcome::skipped, at);
}

/// Would an optional op that starts then end after its deadline, as known at `at`?
bool EventPlayer::misses_deadline(OpInstance& op, TimePoint start, TimePoint at) {
  const auto window = facts_.windows.find(op.op);
  if (window == facts_.windows.end() || window->second.deadline == plan::kNoDeadline) return false;
  const bool sends = plan_.op(op.op).kind == OpKind::send;
  const Duration takes =
      sends ? hold_time(op.op, op.iteration, start) : duration_of(op.op, op.iteration);
  const Duration planned = begun_.at(op.iteration) - began_ + window->second.deadline;
  op.deadline = began_ + deadlines_.of(op.op, op.iteration, planned, start - began_, at - began_);
  return start + takes > op.deadline;
}

const EventPlayer::RemoteEnd* EventPlayer::remote_end(OpId op, int iteration) const {
  const auto ops = remote_.find(iteration);
  if (ops == remote_.end()) return nullptr;
  const auto found = ops->second.find(op);
  return found == ops->second.end() ? nullptr : &found->second;
}

Duration EventPlayer::duration_of(OpId op, int iteration) const {
  if (const plan::Draw* const drawn = draw_of(op); drawn != nullptr && drawn->takes)
    return *drawn->takes;
  return values_.duration(op, iteration);
}

Duration EventPlayer::hold_time(OpId send, int iteration, TimePoint begin) const {
  return hold_time(send, iteration, begin, duration_of(send, iteration));
}

/// `calm`: what it takes without weather.
Duration EventPlayer::hold_time(OpId send, int iteration, TimePoint begin, Duration calm) const {
  if (!state_.emulates()) return Duration::zero();
  if (weather_.weather == nullptr) return calm;
  return weather_.weather->hold(send, static_cast<std::uint64_t>(first_iteration_ + iteration),
                                state_.conditions.age(begin), calm, values_.size(send, iteration));
}

Duration EventPlayer::latency(OpId recv, int iteration, TimePoint end) const {
  if (!state_.emulates()) return Duration::zero();
  if (weather_.weather == nullptr) return duration_of(recv, iteration);
  return weather_.weather->latency(recv, static_cast<std::uint64_t>(first_iteration_ + iteration),
                                   state_.conditions.age(end));
}

}  // namespace longhaul::engine
