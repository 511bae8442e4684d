#include "runtime/engine/engine.hpp"

#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "runtime/engine/collective_side.hpp"
#include "runtime/engine/compute_side.hpp"
#include "runtime/engine/core.hpp"
#include "runtime/engine/recv_side.hpp"
#include "runtime/engine/send_side.hpp"
#include "runtime/engine/verify.hpp"
#include "runtime/made_up_cargo.hpp"

namespace longhaul {
namespace {

bool has_core_for_each(const Board& board) {
  return std::thread::hardware_concurrency() >= static_cast<unsigned>(board.local_ranks());
}

/// Only where every rank of the host has a core to itself: a last stretch before a timer that is
/// looked through instead of slept, and how long a rank stays awake for a message that was
/// announced to it.
constexpr Duration kFinalSpin = std::chrono::microseconds{60};
constexpr Duration kAlertSpin = std::chrono::microseconds{200};

constexpr Duration kShortestPoll = std::chrono::microseconds{50};
constexpr Duration kLongestPoll = std::chrono::milliseconds{1};
/// However quiet: a look at the transport.
constexpr Duration kSafetyLook = std::chrono::milliseconds{20};

}  // namespace

struct Engine::Parts {
  Parts(const Plan& plan, Ranks& ranks, Device& the_device, Cargo& cargo,
        const EngineOptions& options)
      : device{the_device},
        core{plan, ranks.board(), ranks.transport(), cargo, options, ranks.next_run()},
        compute{core, device},
        sends{core},
        receives{core},
        collectives{core},
        meetings{Gathering{core, all_ranks(ranks.count()), core.tags.gathering(0), kNone<OpId>},
                 Gathering{core, all_ranks(ranks.count()), core.tags.gathering(1), kNone<OpId>}},
        spins{has_core_for_each(ranks.board())} {}

  Device& device;
  Core core;
  ComputeSide compute;
  SendSide sends;
  RecvSide receives;
  CollectiveSide collectives;
  std::array<Gathering, 2> meetings;  ///< before and behind the iteration
  std::size_t meeting = 0;            ///< the one that goes on
  bool spins;
  std::uint32_t alerts = 0;  ///< that this rank has heeded
  TimePoint awake_until{};   ///< for an announced message
  TimePoint announced{};     ///< the timer whose messages were announced
  std::vector<Completion> completions;
  std::uint32_t looked_at_bell = 0;
  TimePoint looked{};  ///< when the transport was looked at last
  Duration poll = kShortestPoll;
};

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, EngineOptions options)
    : Engine{plan, ranks, device,
             std::make_unique<MadeUpCargo>(plan, ranks.self(), options.run.seed, options.payload),
             options} {}

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, std::unique_ptr<Cargo> own,
               EngineOptions options)
    : Engine{plan, ranks, device, *own, std::move(options)} {
  own_cargo_ = std::move(own);
}

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, Cargo& cargo, EngineOptions options)
    : plan_{plan},
      ranks_{ranks},
      options_{std::move(options)},
      parts_{std::make_unique<Parts>(plan_, ranks_, device, cargo, options_)} {
  LONGHAUL_ASSERT(plan.ranks.size() == static_cast<std::size_t>(ranks.count()),
                  "a plan of {} ranks on {}", plan.ranks.size(), ranks.count());
  for (const Lane& lane : plan.lanes)
    if (lane.kind == LaneKind::recv && lane.rank == ranks.self()) receives_ += lane.count;
}

Engine::~Engine() { ranks_.watchdog().follow(nullptr); }

IterationResult Engine::run(int iteration, const PlayedWeather& weather) {
  Core& core = parts_->core;
  RankSlot& slot = ranks_.board().mine();
  core.iteration = iteration;
  core.checks = {};
  core.wrong.clear();
  core.transfers = {};
  core.relays.begin_iteration();
  core.cargo.begin_iteration(core.run, iteration);
  parts_->device.begin_iteration(iteration);
  core.conditions.begin_iteration(iteration, weather);
  core.struck = struck_op(options_.fault, plan_, ranks_.self(), iteration);
  slot.schedule = static_cast<std::int32_t>(core.run);
  slot.iteration = iteration;
  ranks_.watchdog().follow(&core.ops.events());
  ranks_.watchdog().progress(now());
  slot.phase = Phase::barrier;
  meet(0);
  slot.phase = Phase::running;
  try {
    execute();
  } catch (const DeviceError& error) {
    ranks_.watchdog().fail(fmt::format("its device failed in {}: {}",
                                       ranks_.watchdog().text_of(error.op()), error.what()));
  }
  slot.phase = Phase::between;
  meet(1);
  for (const LateVerdict& late : core.cargo.end_iteration()) parts_->receives.found_late(late);
  core.checks += verify_order(plan_, ranks_.self(), core.ops.times());
  core.checks.lost += receives_ - core.transfers.transfers;
  return {core.ops.times(),
          core.checks,
          core.links ? core.links->take_cost() : LeaseCost{},
          core.transfers.transfers,
          core.transfers.total,
          core.transfers.longest,
          core.wrong,
          core.conditions.age(core.began)};
}

void Engine::meet(int which) {
  parts_->meeting = static_cast<std::size_t>(which);
  Gathering& meeting = parts_->meetings[parts_->meeting];
  meeting.enter(now());
  while (!meeting.complete()) {
    const std::uint32_t bell = ranks_.board().bell();
    if (!handle_completions(now())) wait(bell);
  }
}

void Engine::execute() {
  Core& core = parts_->core;
  core.began = now();
  core.ops.begin_iteration(core.began);
  parts_->compute.begin_iteration();
  parts_->sends.begin_iteration();
  parts_->receives.begin_iteration();
  parts_->collectives.begin_iteration();
  while (!core.ops.all_done()) {
    const std::uint32_t bell = ranks_.board().bell();
    if (!step()) wait(bell);
  }
}

bool Engine::step() {
  Parts& parts = *parts_;
  bool moved = handle_timers(now());
  moved = parts.compute.advance(now()) || moved;
  moved = parts.sends.advance(now()) || moved;
  moved = parts.receives.advance() || moved;
  moved = parts.collectives.advance(now()) || moved;
  moved = handle_completions(now()) || moved;
  if (moved) ranks_.watchdog().progress(now());
  return moved;
}

bool Engine::handle_timers(TimePoint at) {
  Parts& parts = *parts_;
  bool moved = false;
  while (const auto timer = parts.core.timers.take_due(at)) {
    moved = true;
    switch (plan_.op(timer->op).kind) {
      case OpKind::send: parts.sends.hold_over(timer->op, timer->due, at); break;
      case OpKind::recv: parts.receives.arrived(timer->op, timer->due, at); break;
      case OpKind::collective: parts.collectives.over(timer->op, timer->due, at); break;
      case OpKind::compute: break;
    }
  }
  return moved;
}

/// Looks at the transport when a bell has rung since the last look, when polling is due, and now
/// and then for safety: a timer alone does not need it.
bool Engine::handle_completions(TimePoint at) {
  Parts& parts = *parts_;
  const std::uint32_t bell = ranks_.board().bell();
  const Transport& transport = ranks_.transport();
  const bool due = bell != parts.looked_at_bell || transport.wants_look() ||
                   transport.wants_polling() || parts.core.open_transfers > 0 ||
                   at < parts.awake_until || at - parts.looked >= kSafetyLook;
  if (!due) return false;
  parts.looked_at_bell = bell;
  parts.looked = at;
  parts.completions.clear();
  ranks_.transport().advance(parts.completions);
  if (parts.completions.empty()) return false;
  parts.poll = kShortestPoll;
  const TimePoint seen = now();
  for (const Completion& completion : parts.completions) dispatch(completion, seen);
  ranks_.watchdog().progress(seen);
  return true;
}

void Engine::dispatch(const Completion& completion, TimePoint at) {
  Parts& parts = *parts_;
  const auto found = parts.core.expected.find(completion.ticket);
  if (found == parts.core.expected.end()) return;  // of an engine before
  const Expected what = found->second;
  parts.core.expected.erase(found);
  switch (what.role) {
    case Role::header_sent: return parts.sends.sent(what.op, at);
    case Role::payload_sent: return parts.sends.payload_sent(what.op, completion, at);
    case Role::go_ahead_sent: return;
    case Role::header_received:
      return parts.receives.header_came(what.op, completion.size_bytes, at);
    case Role::payload_received: return parts.receives.payload_came(what.op, completion, at);
    case Role::go_ahead_received: return parts.sends.go_ahead(what.op, at);
    case Role::gathering:
      if (what.op != kNone<OpId>) return parts.collectives.gathered(what.op, at);
      return parts.meetings[parts.meeting].received(at);
    case Role::collective: return parts.collectives.exchanged(what.op, at);
  }
}

/// Nothing moved: sleeps until something can, and sees to it that this is not forever.
void Engine::wait(std::uint32_t bell) {
  const TimePoint at = now();
  const TimePoint timer = std::min(parts_->core.timers.next(), parts_->device.next_event());
  const TimePoint hold_ends = end_of_hold(at);
  ranks_.watchdog().check(at, std::min(timer, hold_ends));
  // An op that an outage holds has a timer of its own, for which the watchdog would wait.
  if (const auto held = parts_->core.conditions.look_for_outage(at))
    ranks_.watchdog().check_outage(held->op, at - held->since, held->left);
  if (parts_->spins && keeps_awake(at, timer)) return;
  parts_->core.ops.publish_wait(parts_->compute.next());
  const TimePoint wake = parts_->spins && timer != kNever ? timer - kFinalSpin : timer;
  ranks_.board().sleep(bell, std::min({wake, hold_ends, next_look(at)}));
}

/// Of the next one that the transport plays; behind it, looks are close to each other.
TimePoint Engine::end_of_hold(TimePoint at) {
  const TimePoint end = ranks_.transport().next_event();
  if (end == kNever) return kNever;
  if (end <= at + parts_->poll) parts_->poll = kShortestPoll;
  return end > at ? end : kNever;
}

/// Is something so near that this rank looks out for it instead of sleeping?
bool Engine::keeps_awake(TimePoint at, TimePoint timer) {
  const std::uint32_t alerts = ranks_.board().mine().alerts.load();
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
  const Core& core = parts_->core;
  const OpId op = core.timers.next() == timer ? core.timers.next_op() : parts_->compute.running();
  if (op == kNone<OpId>) return;
  for (const OpId next : core.ops.dependents(op))
    if (plan_.op(next).kind == OpKind::send) ranks_.board().alert(plan_.op(next).peer);
}

TimePoint Engine::next_look(TimePoint at) {
  TimePoint look = std::min(at + kSafetyLook, ranks_.watchdog().expires(kNever));
  if (const Duration poll = parts_->device.poll_interval(); poll > Duration::zero())
    look = std::min(look, at + poll);
  if (ranks_.transport().wants_polling() || parts_->core.open_transfers > 0) {
    look = std::min(look, at + parts_->poll);
    parts_->poll = std::min(parts_->poll * 2, kLongestPoll);
  }
  return look;
}

}  // namespace longhaul
