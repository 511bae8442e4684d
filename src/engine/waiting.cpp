// When nothing moves: how long a rank sleeps, and what it looks out for instead.
#include <algorithm>

#include "engine/engine_parts.hpp"

namespace longhaul::engine {
namespace {

/// Only where every rank of the host has a core to itself: a last interval before a timer that is
/// looked through instead of slept, and how long a rank stays awake for a message that was
/// announced to it.
constexpr Duration kFinalSpin = std::chrono::microseconds{60};
constexpr Duration kAlertSpin = std::chrono::microseconds{200};

constexpr Duration kLongestPoll = std::chrono::milliseconds{1};
/// While words on leases are expected of other hosts: each look that is late is a link idle.
constexpr Duration kLongestLeasePoll = std::chrono::microseconds{200};

}  // namespace

/// Nothing moved: sleeps until something can, and sees to it that this is not forever.
void Engine::wait(std::uint32_t doorbell) {
  const TimePoint at = now();
  PlanPlayer* const player = parts_->player.get();
  TimePoint timer = std::min(parts_->state.timers.next(), parts_->device.next_event());
  if (player != nullptr) timer = std::min(timer, player->next_timer());
  const TimePoint hold_ends = end_of_hold(at);
  ranks_.watchdog().check(at, std::min(timer, hold_ends));
  // An op that an outage holds has a timer of its own, for which the watchdog would wait.
  if (const auto held = parts_->state.conditions.look_for_outage(at))
    ranks_.watchdog().check_outage(held->op, at - held->since, held->left);
  // Virtual time does not pass while anyone looks out.
  const bool spins = parts_->spins && virtual_clock() == nullptr;
  if (spins && keeps_awake(at, timer)) return;
  if (player != nullptr)
    player->publish_wait();
  else
    parts_->state.ops.publish_wait(parts_->compute.next());
  const TimePoint wake = spins && timer != kNever ? timer - kFinalSpin : timer;
  ranks_.host_ranks().sleep(doorbell, std::min({wake, hold_ends, next_look(at)}));
}

/// The time of the next one that the transport plays; after it, looks are close to each other.
TimePoint Engine::end_of_hold(TimePoint at) {
  const TimePoint end = ranks_.transport().next_event();
  if (end == kNever) return kNever;
  if (end <= at + parts_->poll) parts_->poll = kShortestPoll;
  return end > at ? end : kNever;
}

/// Is something so near that this rank looks out for it instead of sleeping?
bool Engine::keeps_awake(TimePoint at, TimePoint timer) {
  const std::uint32_t alerts = ranks_.host_ranks().mine().alerts.load();
  if (alerts != parts_->alerts) {
    parts_->alerts = alerts;
    parts_->awake_until = at + kAlertSpin;
  }
  if (timer > at + kFinalSpin) return at < parts_->awake_until;
  announce(timer);
  return true;
}

/// Tells who gets the messages that leave when `timer` fires.
void Engine::announce(TimePoint timer) {
  if (parts_->announced == timer) return;
  parts_->announced = timer;
  const EngineState& state = parts_->state;
  const OpId op = state.timers.next() == timer ? state.timers.next_op() : parts_->compute.running();
  if (op == kNone<OpId>) return;
  for (const OpId next : state.ops.dependents(op))
    if (plan_.op(next).kind == OpKind::send) ranks_.host_ranks().alert(plan_.op(next).peer);
}

TimePoint Engine::next_look(TimePoint at) {
  TimePoint look = std::min(at + kSafetyLook, ranks_.watchdog().expires(kNever));
  if (const Duration poll = parts_->device.poll_interval(); poll > Duration::zero())
    look = std::min(look, at + poll);
  std::optional<Links>& links = parts_->state.links;
  if (links && links->has_asked()) parts_->poll = kShortestPoll;
  if (ranks_.transport().wants_polling() || parts_->state.open_transfers > 0) {
    look = std::min(look, at + parts_->poll);
    const bool leases = links && links->awaits_words();
    parts_->poll = std::min(parts_->poll * 2, leases ? kLongestLeasePoll : kLongestPoll);
  }
  return look;
}

}  // namespace longhaul::engine
