#include "engine/engine.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "comm/transport.hpp"
#include "engine/arbitration.hpp"
#include "engine/engine_parts.hpp"
#include "engine/links/shared_mutex.hpp"
#include "engine/payloads/synthetic_data_plane.hpp"
#include "engine/verify.hpp"
#include "plan/check_extras.hpp"

namespace longhaul::engine {
namespace {

/// The same plan, where ranks play all that it has.
const Plan& playable(const Plan& plan) {
  if (!plan::needs_event_player(plan)) return plan;
  if (const char* feature = first_unplayed(plan))
    fail("the plan of {} has {} (ranks do not play that yet). Simulate it.", plan.schedule,
         feature);
  return plan;
}

}  // namespace

void EngineParts::slow_beside_messages() {
  const plan::Overlap& overlap = state.plan.extras.overlap;
  const bool can_slow = device.slow_by(overlap);
  if (overlap.none()) return;
  if (!can_slow)
    fail(
        "the plan of {} has computation that slows beside messages (blocks that take planned "
        "times, without a GPU, play that; real ones take what they take). Use --compute timed on "
        "--device cpu, or leave [overlap] out.",
        state.plan.schedule);
  if (!state.emulates())
    fail(
        "the plan of {} has computation that slows beside messages (without emulation none holds "
        "a link). Use --emulate on, or leave [overlap] out.",
        state.plan.schedule);
  state.slowed = &device;
}

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, EngineOptions options)
    : Engine{plan, ranks, device,
             std::make_unique<SyntheticDataPlane>(plan, ranks.self(), options.run.seed,
                                                  options.payload, options.vector),
             options} {}

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, std::unique_ptr<DataPlane> own,
               EngineOptions options)
    : Engine{plan, ranks, device, *own, std::move(options)} {
  own_data_plane_ = std::move(own);
}

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, DataPlane& data_plane,
               EngineOptions options)
    : plan_{playable(plan)},
      ranks_{ranks},
      options_{std::move(options)},
      parts_{std::make_unique<EngineParts>(plan_, ranks_, device, data_plane, options_)} {
  LONGHAUL_ASSERT(std::ssize(plan.ranks) == ranks.count(), "a plan of {} ranks on {}",
                  plan.ranks.size(), ranks.count());
  for (const Lane& lane : plan.lanes)
    if (lane.kind == OpKind::recv && lane.rank == ranks.self()) receives_ += lane.count;
  if (options_.streams || plan::needs_event_player(plan)) make_player();
}

Engine::~Engine() { ranks_.watchdog().follow(nullptr); }

/// Runs `work`; an error that this rank cannot go on from ends the run and names the op that
/// failed.
void Engine::report_failures(const std::function<void()>& work) {
  Watchdog& watchdog = ranks_.watchdog();
  try {
    work();
  } catch (const DeviceError& error) {
    watchdog.fail(
        fmt::format("its device failed in {}: {}", watchdog.text_of(error.op()), error.what()));
  } catch (const LinkTableError& error) {
    watchdog.fail(error.what());
  } catch (const comm::TransportError& error) {
    OpId op = kNone<OpId>;
    if (error.request()) {
      const auto& expected = parts_->state.expected;
      const auto found = expected.find(*error.request());
      op = found != expected.end() ? found->second.op : parts_->state.posted;
    }
    watchdog.fail(op == kNone<OpId> ? fmt::format("its transport failed: {}", error.what())
                                    : fmt::format("its transport failed in {}: {}",
                                                  watchdog.text_of(op), error.what()));
  }
}

/// What all iterations begin with, before the ranks meet.
void Engine::begin_run(int iteration, const PlayedWeather& weather) {
  EngineState& state = parts_->state;
  comm::RankStatus& slot = ranks_.host_ranks().mine();
  state.iteration = iteration;
  state.checks = {};
  state.wrong.clear();
  state.transfers = {};
  state.lateness = {};
  state.credit = {};
  state.relays.begin_iteration();
  state.data_plane.begin_iteration(state.run, iteration);
  parts_->device.begin_iteration(iteration);
  state.conditions.begin_iteration(iteration, weather);
  state.fault_op = find_fault_op(options_.fault, plan_, ranks_.self(), iteration);
  slot.schedule = static_cast<std::int32_t>(state.run);
  slot.iteration = iteration;
  ranks_.watchdog().follow(&state.ops.events());
  ranks_.watchdog().progress(now());
}

IterationResult Engine::run(int iteration, const PlayedWeather& weather) {
  EngineState& state = parts_->state;
  if (parts_->player) {
    IterationResult result;
    run_stream(
        {}, iteration, [&](const IterationResult& each) { result = each; }, weather);
    return result;
  }
  begin_run(iteration, weather);
  report_failures([&] {
    comm::RankStatus& slot = ranks_.host_ranks().mine();
    slot.phase = comm::Phase::barrier;
    barrier(0);
    slot.phase = comm::Phase::running;
    const Arbitration arbitration{state.links ? &*state.links : nullptr};
    execute();
    slot.phase = comm::Phase::between;
    barrier(1);
  });
  for (const LateVerdict& late : state.data_plane.end_iteration())
    parts_->receives.found_late(late);
  state.checks += verify_order(plan_, ranks_.self(), state.ops.times());
  state.checks.lost += receives_ - state.transfers.transfers;
  return {state.ops.times(),
          state.checks,
          state.links ? state.links->take_cost() : LeaseCost{},
          state.transfers.transfers,
          state.transfers.total,
          state.transfers.longest,
          state.wrong,
          state.conditions.age(state.began),
          state.lateness,
          state.credit,
          state.ops.last_end(),
          iteration};
}

void Engine::barrier(int which) {
  parts_->barrier = to_size(which);
  ArrivalBarrier& barrier = parts_->barriers[parts_->barrier];
  barrier.enter(now());
  // The home of a lease serves until all have let go of it.
  const std::optional<Links>& links = parts_->state.links;
  while (!barrier.complete() || (links && !links->idle())) {
    const std::uint32_t doorbell = ranks_.host_ranks().doorbell();
    if (!handle_completions(now())) wait(doorbell);
  }
}

void Engine::execute() {
  EngineState& state = parts_->state;
  state.began = now();
  state.ops.begin_iteration(state.began);
  if (state.links) state.links->begin_iteration();
  parts_->compute.begin_iteration();
  parts_->sends.begin_iteration();
  parts_->receives.begin_iteration();
  parts_->collectives.begin_iteration();
  while (!state.ops.all_done()) {
    const std::uint32_t doorbell = ranks_.host_ranks().doorbell();
    if (!step()) wait(doorbell);
  }
}

bool Engine::step() {
  EngineParts& parts = *parts_;
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
  EngineParts& parts = *parts_;
  bool moved = false;
  while (const auto timer = parts.state.timers.take_due(at)) {
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

/// Looks at the transport when a doorbell has rung since the last look, when polling is due, and
/// now and then for safety: a timer alone does not need it.
bool Engine::handle_completions(TimePoint at) {
  EngineParts& parts = *parts_;
  const bool served = parts.state.links && parts.state.links->serve(at);
  const std::uint32_t doorbell = ranks_.host_ranks().doorbell();
  const comm::Transport& transport = ranks_.transport();
  const bool due = doorbell != parts.looked_at_doorbell || transport.wants_look() ||
                   transport.wants_polling() || parts.state.open_transfers > 0 ||
                   at < parts.awake_until || at - parts.looked >= kSafetyLook;
  if (!due) return served;
  parts.looked_at_doorbell = doorbell;
  parts.looked = at;
  parts.completions.clear();
  ranks_.transport().advance(parts.completions);
  const bool goes_on = transport.wants_look();  // with the pieces of a payload
  if (parts.completions.empty() && !goes_on) return served;
  parts.poll = kShortestPoll;
  const TimePoint seen = now();
  for (const comm::Completion& completion : parts.completions) dispatch(completion, seen);
  ranks_.watchdog().progress(seen);
  return true;
}

void Engine::dispatch(const comm::Completion& completion, TimePoint at) {
  EngineParts& parts = *parts_;
  if (parts.state.links && parts.state.links->took(completion, at)) return;
  if (parts.player && parts.player->took(completion, at)) return;
  const auto found = parts.state.expected.find(completion.request);
  if (found == parts.state.expected.end()) return;  // of an engine before
  const Expected what = found->second;
  parts.state.expected.erase(found);
  switch (what.role) {
    case Role::header_sent: return parts.sends.sent(what.op, at);
    case Role::payload_sent: return parts.sends.payload_sent(what.op, completion, at);
    case Role::go_ahead_sent: return;
    case Role::header_received:
      return parts.receives.header_came(what.op, completion.size_bytes, at);
    case Role::payload_received: return parts.receives.payload_came(what.op, completion, at);
    case Role::go_ahead_received: return parts.sends.go_ahead(what.op, at);
    case Role::barrier:
      if (what.op != kNone<OpId>) return parts.collectives.gathered(what.op, at);
      return parts.barriers[parts.barrier].received(at);
    case Role::collective: return parts.collectives.exchanged(what.op, at);
  }
}

}  // namespace longhaul::engine
