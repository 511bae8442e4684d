#include "engine/engine.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "comm/transport.hpp"
#include "engine/engine_parts.hpp"
#include "engine/payloads/synthetic_data_plane.hpp"
#include "engine/verify.hpp"

namespace longhaul::engine {
namespace {

/// While it exists, the virtual clock, where there is one, has the links decide.
class Arbitration {
public:
  explicit Arbitration(std::optional<Links>& links) : links_{links} {
    if (virtual_clock() != nullptr && links_) virtual_clock()->add(*links_);
  }
  ~Arbitration() {
    if (virtual_clock() != nullptr && links_) virtual_clock()->remove(*links_);
  }
  Arbitration(const Arbitration&) = delete;
  Arbitration& operator=(const Arbitration&) = delete;

private:
  std::optional<Links>& links_;
};

}  // namespace

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, EngineOptions options)
    : Engine{plan, ranks, device,
             std::make_unique<SyntheticDataPlane>(plan, ranks.self(), options.run.seed,
                                                  options.payload),
             options} {}

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, std::unique_ptr<DataPlane> own,
               EngineOptions options)
    : Engine{plan, ranks, device, *own, std::move(options)} {
  own_data_plane_ = std::move(own);
}

Engine::Engine(const Plan& plan, Ranks& ranks, Device& device, DataPlane& data_plane,
               EngineOptions options)
    : plan_{plan},
      ranks_{ranks},
      options_{std::move(options)},
      parts_{std::make_unique<EngineParts>(plan_, ranks_, device, data_plane, options_)} {
  LONGHAUL_ASSERT(std::ssize(plan.ranks) == ranks.count(), "a plan of {} ranks on {}",
                  plan.ranks.size(), ranks.count());
  for (const Lane& lane : plan.lanes)
    if (lane.kind == OpKind::recv && lane.rank == ranks.self()) receives_ += lane.count;
}

Engine::~Engine() { ranks_.watchdog().follow(nullptr); }

/// Runs `work`; an error that this rank cannot go on from ends the run and names the op that
/// failed.
template <typename Work>
void Engine::report_failures(Work&& work) {
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

IterationResult Engine::run(int iteration, const PlayedWeather& weather) {
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
  report_failures([&] {
    slot.phase = comm::Phase::barrier;
    barrier(0);
    slot.phase = comm::Phase::running;
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
          state.ops.last_end()};
}

void Engine::barrier(int which) {
  parts_->barrier = to_size(which);
  ArrivalBarrier& barrier = parts_->barriers[parts_->barrier];
  barrier.enter(now());
  while (!barrier.complete()) {
    const std::uint32_t doorbell = ranks_.host_ranks().doorbell();
    if (!handle_completions(now())) wait(doorbell);
  }
}

void Engine::execute() {
  EngineState& state = parts_->state;
  const Arbitration arbitration{state.links};
  state.began = now();
  state.ops.begin_iteration(state.began);
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
  const std::uint32_t doorbell = ranks_.host_ranks().doorbell();
  const comm::Transport& transport = ranks_.transport();
  const bool due = doorbell != parts.looked_at_doorbell || transport.wants_look() ||
                   transport.wants_polling() || parts.state.open_transfers > 0 ||
                   at < parts.awake_until || at - parts.looked >= kSafetyLook;
  if (!due) return false;
  parts.looked_at_doorbell = doorbell;
  parts.looked = at;
  parts.completions.clear();
  ranks_.transport().advance(parts.completions);
  const bool goes_on = transport.wants_look();  // with the pieces of a payload
  if (parts.completions.empty() && !goes_on) return false;
  parts.poll = kShortestPoll;
  const TimePoint seen = now();
  for (const comm::Completion& completion : parts.completions) dispatch(completion, seen);
  ranks_.watchdog().progress(seen);
  return true;
}

void Engine::dispatch(const comm::Completion& completion, TimePoint at) {
  EngineParts& parts = *parts_;
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
