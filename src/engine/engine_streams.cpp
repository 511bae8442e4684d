// The engine's way through plans with extras, and streams: a PlanPlayer in the place of its lanes.
#include <algorithm>
#include <utility>

#include "base/error.hpp"
#include "engine/arbitration.hpp"
#include "engine/engine_parts.hpp"
#include "plan/check_extras.hpp"

namespace longhaul::engine {

void Engine::make_player() {
  const char* feature = first_unplayed(plan_);
  if (feature == nullptr && ranks_.transport().holds_lanes())
    feature = "payloads in a device's memory, beside what waits";
  if (feature == nullptr && !parts_->device.runs_several())
    feature = "blocks that a device runs in turn, beside what waits";
  if (feature != nullptr)
    fail("the plan of {} has {} (ranks do not play that yet). Simulate it.", plan_.schedule,
         feature);
  parts_->player = make_event_player(parts_->state, parts_->device);
}

std::size_t Engine::most_live_iterations() const {
  return parts_->player ? parts_->player->most_live_iterations() : 1;
}

void Engine::run_stream(const plan::Stream& stream, int first, const StreamSink& sink,
                        const PlayedWeather& weather, StreamControl* control) {
  if (const auto why = plan::why_unsound(plan_, stream)) fail("{}", why->reason);
  if (stream.iterations > 1 && !plan_.stepped.empty())
    fail("the plan of {} has collectives (ranks do not play streams of them yet). Simulate it.",
         plan_.schedule);
  const auto is_relayed = [](const Op& op) { return op.leg != MessageLeg::whole; };
  if (stream.iterations > 1 && std::ranges::any_of(plan_.ops, is_relayed))
    fail(
        "the plan of {} has relayed messages (ranks do not play streams of them yet). Simulate it.",
        plan_.schedule);
  if (!parts_->player) make_player();
  begin_run(first, weather);
  if (options_.fault)  // of whatever iteration: the player looks at that
    parts_->state.fault_op =
        find_fault_op(options_.fault, plan_, ranks_.self(), options_.fault->iteration);
  IterationResult last;  // waits for verdicts on payloads that are compared late
  const auto take = [&](int iteration, PlayedOps ops) {
    ranks_.host_ranks().mine().iteration = first + iteration + 1;
    IterationResult result = result_of(first + iteration, std::move(ops));
    if (iteration + 1 == stream.iterations)
      last = std::move(result);
    else
      sink(result);
  };
  parts_->player->prepare(stream, first, weather, take, control);
  report_failures([&] {
    comm::RankStatus& slot = ranks_.host_ranks().mine();
    slot.phase = comm::Phase::barrier;
    barrier(0);
    slot.phase = comm::Phase::running;
    const Arbitration arbitration{parts_->player.get()};
    play();
    slot.phase = comm::Phase::between;
    barrier(1);
  });
  for (const LateVerdict& late : parts_->state.data_plane.end_iteration()) {
    --last.checks.messages;
    ++last.checks.corrupted;
    last.wrong.push_back({late.recv, last.iteration, late.verdict, false, late.found});
  }
  sink(last);
}

void Engine::play() {
  EngineState& state = parts_->state;
  PlanPlayer& player = *parts_->player;
  state.began = now();
  player.begin(state.began);
  while (!player.done()) {
    const std::uint32_t doorbell = ranks_.host_ranks().doorbell();
    bool moved = player.step(now());
    moved = handle_completions(now()) || moved;
    if (!moved && virtual_clock() == nullptr) moved = player.decide(now());
    if (!moved) moved = player.rest(now());
    if (moved)
      ranks_.watchdog().progress(now());
    else
      wait(doorbell);
  }
  player.finish();
}

/// Of an iteration of a stream; checks and costs begin anew.
IterationResult Engine::result_of(int iteration, PlayedOps ops) {
  EngineState& state = parts_->state;
  IterationResult result;
  result.iteration = iteration;
  result.times = std::move(ops.times);
  result.outcomes = std::move(ops.outcomes);
  result.versions = std::move(ops.versions);
  result.end = {ops.end, ops.end};
  result.checks = std::exchange(state.checks, {});
  result.checks += ops.order;
  result.transfers = state.transfers.transfers;
  result.transfer_total = state.transfers.total;
  result.transfer_longest = state.transfers.longest;
  state.transfers = {};
  result.wrong = std::exchange(state.wrong, {});
  result.weather_age = state.conditions.age(state.began);
  result.lateness = std::exchange(state.lateness, {});
  result.credit = std::exchange(state.credit, {});
  return result;
}

}  // namespace longhaul::engine
