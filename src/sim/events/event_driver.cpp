#include "sim/events/event_driver.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "base/index.hpp"
#include "sim/events/event_driver_steps.hpp"

namespace longhaul::sim {

Result<OpResults> EventDriver::run() {
  if (auto why = run(Sink{})) return *std::move(why);
  OpResults results = instances_.take_only();
  clear_skipped(results);
  return results;
}

std::optional<Refusal> EventDriver::run(const Sink& sink) {
  for (std::size_t lane = lanes_.size(); lane-- > 0;)
    if (plan_.lanes[lane].count > 0) work_.push_back(static_cast<std::uint32_t>(lane));
  instances_.open(stream_.first);
  for (;;) {
    drain();
    while (sink && instances_.has_complete()) {
      auto [iteration, results] = instances_.take();
      clear_skipped(results);
      sink(iteration, results);
    }
    if (!events_.empty() && events_.next() == now_) {
      handle(events_.pop());
      continue;
    }
    if (end_instant()) continue;
    if (events_.empty()) {
      if (end_sources()) continue;
      break;
    }
    const Event event = events_.pop();
    if (progress_ && is_stale(event)) continue;
    now_ = event.at;
    handle(event);
  }
  if (first_unfinished() != kNoOp) return deadlock();
  if (sink && !noted_) sink(0, instances_.take_only());
  return std::nullopt;
}

/// All events of this instant are over: false where nothing more is to do in it.
bool EventDriver::end_instant() {
  if (noted_ && choose(Which::orders)) return true;
  if (sources_ && ask_sources()) return true;
  const Duration next_event = events_.empty() ? kForever : events_.next();
  const Duration asked = requests_.empty() ? kForever : requests_.top().ready;
  if (asked < next_event && asked <= now_) {
    const Request request = requests_.top();
    requests_.pop();
    serve(request);
    return true;
  }
  if (!noted_) {
    if (asked >= next_event) return false;
    now_ = asked;
    return true;
  }
  if (choose(Which::all)) return true;
  if (!unmet_.empty()) return meet_versions(), true;
  if (asked >= next_event) return false;
  now_ = asked;
  return true;
}

/// A block ends at another time by now: nothing happens at this one.
bool EventDriver::is_stale(const Event& event) const {
  return event.kind == EventKind::end_block &&
         !progress_->is_due(plan_.rank_of(instances_.id(event.subject)), event.subject, event.at);
}

void EventDriver::handle(const Event& event) {
  const std::uint32_t id = event.subject;
  switch (event.kind) {
    case EventKind::lane: return advance(id);
    case EventKind::arrival: return arrive(id);
    case EventKind::release: return release(id);
    case EventKind::ask_source:
      if (auto* entry = sources_->of_lane(LaneId{id}); entry->state == Sources::State::busy)
        entry->state = Sources::State::due;
      return;
    case EventKind::wake_source: return;  // it is due by the time
    case EventKind::begin_hold: return hold_ranks(id, 1);
    case EventKind::end_hold: return hold_ranks(id, -1);
    case EventKind::end_block: return end_block(id);
    case EventKind::end_op: return note_op_end(id, event.at);
    case EventKind::meet: return unmet_.push_back(id);
    case EventKind::give_up: return give_up(id);
    case EventKind::begin_iteration: return begin_windows(static_cast<int>(id));
  }
}

void EventDriver::drain() {
  const auto lanes = static_cast<std::uint32_t>(lanes_.size());
  while (!work_.empty()) {
    const std::uint32_t next = work_.back();
    work_.pop_back();
    if (next < lanes)
      advance(next);
    else
      consider(next - lanes);
  }
}

void EventDriver::advance(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  if (state.way != Way::in_turn) [[unlikely]]
    return state.way == Way::pool ? admit(lane) : void();
  const auto lanes = static_cast<std::uint32_t>(lanes_.size());
  for (;;) {
    if (state.next == state.end && !begin_iteration(lane)) return;
    const std::uint32_t id = state.next;
    if (noted_ && stage(id) != Stage::away && time(id).end != kNever)
      return;  // it waits elsewhere, and tells its lane
    const bool posted = time(id).ready != kPending || post(id, noted_ ? lanes + id : lane);
    if (noted_ && time(id).end == kNever) {  // its lane held others up until now
      ++state.next;
      state.last_start = std::max(state.last_start, now_);
      state.free = std::max(state.free, now_);
      continue;
    }
    if (!posted || !try_start(id, lane)) return;
  }
}

bool EventDriver::begin_iteration(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  if (state.iteration + 1 >= stream_.iterations || plan_.lanes[lane].count == 0) return false;
  ++state.iteration;
  state.next =
      instances_.open(state.iteration) + static_cast<std::uint32_t>(index(plan_.lanes[lane].first));
  state.end = state.next + plan_.lanes[lane].count;
  return true;
}

/// Starts a posted op if it can be now; false: its lane sleeps, or the op waits elsewhere.
inline bool EventDriver::try_start(std::uint32_t id, std::uint32_t lane) {
  const Op& own = op(id);
  switch (own.kind) {
    case OpKind::compute: {
      if (access(own) == Access::request) return ask(id), false;
      if (access(own) == Access::choice) return arrive(id), false;
      const Bound bound = bound_of(id);
      if (bound.until > now_) return sleep(lane, bound.until), false;
      run_compute(id, bound);
      return true;
    }
    case OpKind::send:
      return time(other_side(id)).ready != kPending && start_message(id, other_side(id));
    case OpKind::recv:
      return time(other_side(id)).ready != kPending &&
             start_message(other_side(id), other_side(id));
    case OpKind::collective: return start_collective(id, lane);
  }
  return false;
}

/// Both sides are posted. `other` is the side whose lane is not being advanced.
inline bool EventDriver::start_message(std::uint32_t send, std::uint32_t other) {
  if (access(op(send)) == Access::request) return ask(send), false;
  if (access(op(send)) == Access::choice) return arrive(send), false;
  const Bound bound = bound_of(send);
  if (bound.until > now_) return sleep(lane_of(send), bound.until), false;
  run_transfer(send, bound);
  go_on(lane_of(other));
  return true;
}

/// Posts the next op of a lane of messages, whose last one has just been started by its other side.
inline void EventDriver::go_on(std::uint32_t lane) {
  const LaneState& state = lanes_[lane];
  if (noted_ || state.next == state.end) return work_.push_back(lane);
  if (!post(state.next, lane)) return;
  if (time(other_side(state.next)).ready != kPending) work_.push_back(lane);
}

void EventDriver::sleep(std::uint32_t lane, Duration until) {
  if (until != kForever) events_.push({until, lane, EventKind::lane});
}

void EventDriver::run_compute(std::uint32_t id, const Bound& bound) {
  if (progress_ && on_device_[index(op(id).resources)] != 0) return begin_block(id, bound);
  const Duration end = bound.until + duration_of(id);
  finish(id, end, end, bound);
}

/// Puts a chain of lanes and ops to work that waited for an op whose end is known now.
void EventDriver::wake(std::uint32_t waiting) {
  const auto lanes = static_cast<std::uint32_t>(lanes_.size());
  while (waiting != kNoWaiter) {
    work_.push_back(waiting);
    waiting =
        waiting < lanes ? lanes_[waiting].next_waiter : instances_.next_waiter[waiting - lanes];
  }
}

/// What a source said of the op, where one drew it.
const plan::Draw* EventDriver::draw_of(std::uint32_t id) const {
  if (!sources_) [[likely]]
    return nullptr;
  const std::uint32_t lane = lane_of(id);
  if (lanes_[lane].way != Way::sourced) return nullptr;
  return sources_->draw_of(LaneId{lane}, instances_.id(id));
}

/// What it is judged by before it has started.
Duration EventDriver::announced(std::uint32_t id) const {
  const auto& said = plan_.extras.announced;
  if (said.empty() || (draw_of(id) != nullptr && draw_of(id)->takes)) return duration_of(id);
  return said[instances_.op(id)];
}

Duration EventDriver::duration_of(std::uint32_t id) const {
  if (const plan::Draw* const draw = draw_of(id); draw != nullptr && draw->takes)
    return *draw->takes;
  if (values_.unchanged()) [[likely]]
    return op(id).duration;
  return values_.duration(instances_.id(id), instances_.iteration(id));
}

Duration EventDriver::hold_time(std::uint32_t send, Duration begin) const {
  if (at_.weather == nullptr) [[likely]]
    return duration_of(send);
  const OpId id = instances_.id(send);
  const int iteration = instances_.iteration(send);
  return at_.weather->hold(id, at_.iteration + static_cast<std::uint64_t>(iteration),
                           at_.begin + begin, duration_of(send), values_.size(id, iteration));
}

Duration EventDriver::latency(std::uint32_t recv, Duration end) const {
  if (at_.weather == nullptr) [[likely]]
    return duration_of(recv);
  const auto iteration = static_cast<std::uint64_t>(instances_.iteration(recv));
  return at_.weather->latency(instances_.id(recv), at_.iteration + iteration, at_.begin + end);
}

void EventDriver::clear_skipped(OpResults& results) const {
  if (!noted_) return;
  bool all_ran = true;
  for (std::size_t i = 0; i < results.times.size(); ++i) {
    all_ran = all_ran && results.outcomes[i] == Outcome::ran;
    if (results.times[i].end == kNever) results.times[i] = {};
  }
  if (all_ran) results.outcomes.clear();
  if (std::ranges::all_of(results.versions, [](std::int32_t version) { return version == -1; }))
    results.versions.clear();
}

}  // namespace longhaul::sim
