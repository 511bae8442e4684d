// Lanes with several ops at a time, and ops that may not run.
#include <algorithm>
#include <variant>

#include "base/error.hpp"
#include "base/index.hpp"
#include "sim/events/event_driver_steps.hpp"

namespace longhaul::sim {
namespace {

template <typename... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <typename... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

}  // namespace

/// Lets ops of a pool begin to wait: where the lane chooses all of an iteration, where it is an
/// order those up to the next one that must run.
void EventDriver::admit(std::uint32_t lane) {
  LaneState& state = lanes_[lane];
  while (state.awaited == kNoOp) {
    if (state.next == state.end) {
      if ((state.has_mandatory ? state.open_mandatory : state.open_all) > 0) return;
      if (!begin_iteration(lane)) return;
      state.open_all = state.open_mandatory = 0;
      for (std::uint32_t id = state.next; id != state.end; ++id) {
        if (time(id).end == kNever) continue;
        ++state.open_all;
        if (is_mandatory(id)) ++state.open_mandatory;
      }
    }
    const std::uint32_t id = state.next++;
    if (is_mandatory(id) && state.serve == Serve::order && time(id).end != kNever)
      state.awaited = id;
    admit_op(id);
  }
}

void EventDriver::admit_op(std::uint32_t id) {
  if (stage(id) != Stage::away || time(id).end != kPending) return;
  stage(id) = Stage::admitted;
  expect_give_up(id);
  consider(id);
}

/// Brings an admitted op as far as it goes: posted, once all before it has ended; then, once its
/// other side is, to what it holds.
void EventDriver::consider(std::uint32_t id) {
  if (stage(id) != Stage::admitted || time(id).end != kPending) return;
  if (needs_skipped(id)) return skip(id, Outcome::skipped);
  if (lanes_[lane_of(id)].way == Way::in_turn) {  // the head, which waited for another op's end
    stage(id) = Stage::away;
    if (lanes_[lane_of(id)].next == id) advance(lane_of(id));
    return;
  }
  if (!post(id, static_cast<std::uint32_t>(lanes_.size()) + id)) return;
  stage(id) = Stage::posted;
  const Op& own = op(id);
  if (own.kind == OpKind::compute) return access(own) == Access::request ? ask(id) : arrive(id);
  const std::uint32_t other = other_side(id);
  if (time(other).ready == kPending || time(other).end != kPending) return;
  const std::uint32_t send = own.kind == OpKind::send ? id : other;
  if (access(op(send)) == Access::own)
    work_.push_back(lane_of(send));  // its lane is in turn, and it is the head
  else if (access(op(send)) == Access::request)
    ask(send);
  else
    arrive(send);
}

/// Of a lane that is not in turn, `id` starts or will not run: what waited for it goes on.
void EventDriver::leave(std::uint32_t id) {
  const std::uint32_t lane = lane_of(id);
  LaneState& state = lanes_[lane];
  if (state.way != Way::pool || instances_.iteration(id) != state.iteration) return;
  --state.open_all;
  if (is_mandatory(id)) --state.open_mandatory;
  if (state.awaited == id) state.awaited = kNoOp;
  work_.push_back(lane);
}

void EventDriver::skip(std::uint32_t id, Outcome outcome) {
  if (time(id).end != kPending || stage(id) == Stage::served) return;
  const auto waiting = static_cast<std::uint32_t>(time(id).start.count());
  time(id) = OpTime{Duration::zero(), Duration::zero(), kNever};
  instances_.outcomes[id] = outcome;
  instances_.settle(id);
  wake(waiting);
  tell_dependents(id);
  const std::uint32_t lane = lane_of(id);
  if (lanes_[lane].way == Way::in_turn) {
    if (lanes_[lane].next == id) work_.push_back(lane);
  } else {
    leave(id);
  }
  if (sources_) {
    auto* entry = sources_->of_lane(LaneId{lane});
    if (entry != nullptr && entry->state == Sources::State::busy && entry->drawn == id)
      entry->state = Sources::State::due;
  }
  if (op(id).kind == OpKind::send || op(id).kind == OpKind::recv)
    skip(other_side(id), Outcome::skipped);
}

/// Puts to work what needs an op that is skipped now and waits for another of its dependencies.
void EventDriver::tell_dependents(std::uint32_t id) {
  if (dependents_.first.empty()) set_up_dependents();
  const std::uint32_t own = instances_.op(id);
  for (std::uint32_t k = dependents_.first[own]; k < dependents_.first[own + 1]; ++k) {
    const int iteration = instances_.iteration(id) + dependents_.all[k].iterations_back;
    if (!instances_.is_open(iteration)) continue;
    const std::uint32_t waits = instances_.base_of(iteration) + number(dependents_.all[k].op);
    if (stage(waits) == Stage::admitted)
      work_.push_back(static_cast<std::uint32_t>(lanes_.size()) + waits);
  }
}

/// Does something that it depends on not run?
bool EventDriver::needs_skipped(std::uint32_t id) const {
  if (dependents_.first.empty()) return false;  // nothing was skipped yet
  const std::uint32_t base = instances_.base(id);
  for (const OpId before : plan_.after_of(instances_.id(id)))
    if (time(base + number(before)).end == kNever) return true;
  if (far_.first.empty()) return false;
  const std::uint32_t own = instances_.op(id);
  const int iteration = instances_.iteration(id);
  for (std::uint32_t k = far_.first[own]; k < far_.first[own + 1]; ++k) {
    const plan::FarDependency& far = far_.all[k];
    if (far.strength == plan::Strength::weak || iteration - far.iterations_back < stream_.first)
      continue;
    const std::uint32_t from = instances_.base_of(iteration - far.iterations_back);
    if (time(from + number(far.before)).end == kNever) return true;
  }
  return false;
}

/// The rest of post(): dependencies on other iterations and ranks, and the window.
bool EventDriver::post_rest(std::uint32_t id, std::uint32_t waiter, Bound& bound) {
  const std::uint32_t own = instances_.op(id);
  if (!far_.first.empty()) {
    const int iteration = instances_.iteration(id);
    for (std::uint32_t k = far_.first[own]; k < far_.first[own + 1]; ++k) {
      const plan::FarDependency& far = far_.all[k];
      if (far.strength == plan::Strength::weak || iteration - far.iterations_back < stream_.first)
        continue;
      const auto before = static_cast<std::uint32_t>(index(far.before));
      const std::uint32_t cause = instances_.base_of(iteration - far.iterations_back) + before;
      if (time(cause).end < Duration::zero()) return wait_for(cause, id, waiter);
      bound.raise(time(cause).end, before, BoundKind::dependency);
    }
  }
  if (optional_.empty() || optional_[own] == 0) return true;
  const auto window = windows_.find(own);
  if (window == windows_.end()) return true;
  const auto begun = begun_.find(instances_.iteration(id));
  if (begun == begun_.end()) {
    before_begin_[instances_.iteration(id)].push_back(id);
    return false;
  }
  bound.raise(begun->second + window->second.not_before, index(kNone<OpId>), BoundKind::start);
  return true;
}

/// Puts `waiter` at the head of the chain of what waits for `cause`, or skips `id` at once, where
/// any of those that it needs does not run. Gives back false, as post() does then. Where ops may be
/// skipped, they wait for themselves, not their lanes for them: a lane may have gone on before the
/// chain is woken.
bool EventDriver::wait_for(std::uint32_t cause, std::uint32_t id, std::uint32_t waiter) {
  if (time(cause).end == kNever || needs_skipped(id)) {
    skip(id, Outcome::skipped);
    return false;
  }
  const auto head = static_cast<std::uint32_t>(time(cause).start.count());
  time(cause).start = Duration{waiter};
  if (noted_) {
    instances_.next_waiter[id] = head;
    stage(id) = Stage::admitted;
  } else {
    lanes_[waiter].next_waiter = head;
  }
  return false;
}

/// The nanosecond after the last in which it could start: it is given up then. Where deadlines move
/// no one knows which that is.
void EventDriver::expect_give_up(std::uint32_t id) {
  if (deadlines_.moves()) return;
  const auto window = windows_.find(instances_.op(id));
  if (window == windows_.end() || window->second.deadline == plan::kNoDeadline) return;
  const auto begun = begun_.find(instances_.iteration(id));
  if (begun == begun_.end()) return;
  const Duration takes = at_.weather == nullptr ? announced(id) : Duration::zero();
  const Duration last = begun->second + window->second.deadline - takes;
  events_.push({std::max(last + Duration{1}, now_), id, EventKind::give_up});
}

void EventDriver::give_up(std::uint32_t id) {
  if (stage(id) == Stage::away || stage(id) == Stage::served || time(id).end != kPending) return;
  const auto window = windows_.find(instances_.op(id));
  const auto begun = begun_.find(instances_.iteration(id));
  if (begun == begun_.end()) return;
  const Duration takes = at_.weather == nullptr ? announced(id) : Duration::zero();
  if (now_ + takes > begun->second + window->second.deadline) skip(id, Outcome::skipped);
}

/// Windows of an iteration count from now on.
void EventDriver::begin_windows(int iteration) {
  if (!begun_.emplace(iteration, now_).second) return;
  const auto waiting = before_begin_.extract(iteration);
  if (!waiting.empty()) {
    for (const std::uint32_t id : waiting.mapped())
      work_.push_back(static_cast<std::uint32_t>(lanes_.size()) + id);
  }
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].way == Way::in_turn || !instances_.is_open(iteration)) continue;
    for (std::uint32_t k = 0; k < plan_.lanes[lane].count; ++k) {
      const std::uint32_t id = instances_.base_of(iteration) + k +
                               static_cast<std::uint32_t>(index(plan_.lanes[lane].first));
      if (stage(id) == Stage::admitted) expect_give_up(id);
    }
  }
  while (begun_.size() > 1 && begun_.begin()->first < instances_.oldest())
    begun_.erase(begun_.begin());
}

/// Asks one source that is due, where there is one.
bool EventDriver::ask_sources() {
  for (Sources::Entry& entry : sources_->entries())
    if (sources_->is_due(entry, now_) && ask_source(entry)) return true;
  return false;
}

/// Gives back whether something may go on.
bool EventDriver::ask_source(Sources::Entry& entry) {
  const auto lane = static_cast<std::uint32_t>(index(entry.lane));
  if (lanes_[lane].iteration < stream_.first) begin_iteration(lane);
  const plan::Decision decision = sources_->ask(entry, now_, lanes_[lane].iteration);
  bool moves = false;
  std::visit(Overloaded{[&](const plan::Draw& drawn) { draw(entry, drawn), moves = true; },
                        [&](const plan::WaitUntil& wait) {
                          if (wait.time <= now_)
                            fail(
                                "the source of lane \"{}\" waits until {} ns at {} ns (that is "
                                "over). Let it wait for a later time, or for an end.",
                                plan_.lanes[lane].name, wait.time.count(), now_.count());
                          entry.state = Sources::State::until;
                          entry.until = wait.time;
                          events_.push({wait.time, lane, EventKind::ask_source});
                        },
                        [&](const plan::WaitForEnd& wait) {
                          entry.state = Sources::State::for_end;
                          entry.until = std::max(wait.until, now_ + Duration{1});
                          if (wait.until < kForever)
                            events_.push({entry.until, lane, EventKind::wake_source});
                        },
                        [&](const plan::LaneOver&) {
                          end_source_iteration(entry);
                          moves = true;
                        }},
             decision);
  return moves;
}

void EventDriver::draw(Sources::Entry& entry, const plan::Draw& drawn) {
  Sources::take(entry, plan_.lanes[index(entry.lane)], drawn);
  entry.state = Sources::State::busy;
  entry.drawn = instances_.base_of(lanes_[index(entry.lane)].iteration) +
                static_cast<std::uint32_t>(index(drawn.op));
  if (time(entry.drawn).end != kPending) {  // it depends on one that does not run
    entry.state = Sources::State::due;
    return;
  }
  admit_op(entry.drawn);
}

/// What was not drawn will not run; the lane's next iteration begins.
void EventDriver::end_source_iteration(Sources::Entry& entry) {
  const Lane& lane = plan_.lanes[index(entry.lane)];
  const int iteration = lanes_[index(entry.lane)].iteration;
  for (std::uint32_t k = 0; k < lane.count && instances_.is_open(iteration); ++k)
    if (!entry.taken[k])
      skip(instances_.base_of(iteration) + static_cast<std::uint32_t>(index(lane.first)) + k,
           Outcome::undrawn);
  entry.taken.assign(lane.count, false);
  entry.state = begin_iteration(static_cast<std::uint32_t>(index(entry.lane)))
                    ? Sources::State::due
                    : Sources::State::over;
}

/// Nothing happens any more: sources that wait for something have drawn their last.
bool EventDriver::end_sources() {
  if (!sources_) return false;
  bool ended = false;
  for (Sources::Entry& entry : sources_->entries()) {
    if (entry.state != Sources::State::for_end) continue;
    end_source_iteration(entry);
    ended = true;
  }
  return ended;
}

}  // namespace longhaul::sim
