#include "engine/engine.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "comm/transport_error.hpp"
#include "engine/engine_parts.hpp"
#include "engine/payloads/synthetic_data_plane.hpp"
#include "engine/verify.hpp"

namespace longhaul {

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, EngineOptions options)
    : Engine{plan, ranks, device,
             std::make_unique<SyntheticDataPlane>(plan, ranks.self(), options.run.seed,
                                                  options.payload),
             options} {}

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, std::unique_ptr<DataPlane> own,
               EngineOptions options)
    : Engine{plan, ranks, device, *own, std::move(options)} {
  own_cargo_ = std::move(own);
}

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, DataPlane& data_plane,
               EngineOptions options)
    : plan_{plan},
      ranks_{ranks},
      options_{std::move(options)},
      parts_{std::make_unique<Parts>(plan_, ranks_, device, data_plane, options_)} {
  LONGHAUL_ASSERT(std::ssize(plan.ranks) == ranks.count(), "a plan of {} ranks on {}",
                  plan.ranks.size(), ranks.count());
  for (const Lane& lane : plan.lanes)
    if (lane.kind == OpKind::recv && lane.rank == ranks.self()) receives_ += lane.count;
}

Engine::~Engine() { ranks_.watchdog().follow(nullptr); }

/// What this rank cannot go on from ends the run, with the op that it struck.
template <typename Work>
void Engine::report_failures(Work&& work) {
  Watchdog& watchdog = ranks_.watchdog();
  try {
    work();
  } catch (const DeviceError& error) {
    watchdog.fail(
        fmt::format("its device failed in {}: {}", watchdog.text_of(error.op()), error.what()));
  } catch (const TransportError& error) {
    OpId op = kNone<OpId>;
    if (error.ticket()) {
      const auto& expected = parts_->core.expected;
      const auto found = expected.find(*error.ticket());
      op = found != expected.end() ? found->second.op : parts_->core.posted;
    }
    watchdog.fail(op == kNone<OpId> ? fmt::format("its transport failed: {}", error.what())
                                    : fmt::format("its transport failed in {}: {}",
                                                  watchdog.text_of(op), error.what()));
  }
}

IterationResult Engine::run(int iteration, const PlayedWeather& weather) {
  EngineState& core = parts_->core;
  RankStatus& slot = ranks_.host_ranks().mine();
  core.iteration = iteration;
  core.checks = {};
  core.wrong.clear();
  core.transfers = {};
  core.relays.begin_iteration();
  core.data_plane.begin_iteration(core.run, iteration);
  parts_->device.begin_iteration(iteration);
  core.conditions.begin_iteration(iteration, weather);
  core.struck = struck_op(options_.fault, plan_, ranks_.self(), iteration);
  slot.schedule = static_cast<std::int32_t>(core.run);
  slot.iteration = iteration;
  ranks_.watchdog().follow(&core.ops.events());
  ranks_.watchdog().progress(now());
  report_failures([&] {
    slot.phase = Phase::barrier;
    meet(0);
    slot.phase = Phase::running;
    execute();
    slot.phase = Phase::between;
    meet(1);
  });
  for (const LateVerdict& late : core.data_plane.end_iteration()) parts_->receives.found_late(late);
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
  parts_->meeting = to_size(which);
  ArrivalBarrier& meeting = parts_->meetings[parts_->meeting];
  meeting.enter(now());
  while (!meeting.complete()) {
    const std::uint32_t bell = ranks_.host_ranks().bell();
    if (!handle_completions(now())) wait(bell);
  }
}

void Engine::execute() {
  EngineState& core = parts_->core;
  core.began = now();
  core.ops.begin_iteration(core.began);
  parts_->compute.begin_iteration();
  parts_->sends.begin_iteration();
  parts_->receives.begin_iteration();
  parts_->collectives.begin_iteration();
  while (!core.ops.all_done()) {
    const std::uint32_t bell = ranks_.host_ranks().bell();
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
  const std::uint32_t bell = ranks_.host_ranks().bell();
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

}  // namespace longhaul
