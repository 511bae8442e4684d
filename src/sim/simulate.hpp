#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "base/result.hpp"
#include "plan/link_model/weather.hpp"
#include "plan/plan.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::sim {

/// Two lanes whose next ops asked for a resource in the same instant: that of `first` was served
/// first, for its op has the lower id.
struct Tie {
  ResourceId resource{};
  LaneId first{}, second{};
  friend auto operator<=>(const Tie&, const Tie&) = default;
};

/// Runs a plan in virtual time, exact to the nanosecond: lane by lane (LaneSweep), or where the
/// plan needs it in order of time (EventDriver). Throws Error that says why if the plan is unsound
/// (plan::why_unsound), and one (run_failed) that names the cycle of waiting ops if it deadlocks.
[[nodiscard]] OpTimes simulate(const Plan& plan);
/// The same, where a plan that deadlocks is an answer.
Result<OpTimes> try_simulate(const Plan& plan);
/// The same, lane by lane: with the ties that ids decided, each once. A deadlock names no ops.
Result<OpTimes> try_simulate(const Plan& plan, std::vector<Tie>& ties);
/// The same under the weather of one iteration, made for this plan; times count from the
/// iteration's begin. `hop`: ranks hear of each other so long after the event. A receive then
/// begins a hop after its send, a receiver's word that it is ready comes a hop later, and members
/// of a collective tell each other in rounds (ArrivalBarrier), then exchange, which takes a hop
/// too.
[[nodiscard]] OpTimes simulate(const Plan& plan, const plan::WeatherOfIteration& at,
                               Duration hop = {});

/// The same, with what became of ops that may not run, and the versions that ops noted.
[[nodiscard]] OpResults simulate_results(const Plan& plan, const plan::WeatherOfIteration& at = {});
/// In order of time, whatever the plan needs.
[[nodiscard]] Result<OpResults> simulate_in_order_of_time(const Plan& plan,
                                                          const plan::WeatherOfIteration& at = {});

/// One iteration of a stream, all of whose ops have their times: these count from the stream's
/// start.
struct StreamedIteration {
  int iteration = 0;
  const OpResults& results;
};
struct StreamFacts {
  /// Iterations that were in memory at a time: bounded by how far dependencies reach back and how
  /// far they let lanes run apart.
  std::size_t most_live_iterations = 0;
  std::size_t most_settings = 0;  ///< of those added while it ran, likewise
};
/// Runs a plan on, iteration after iteration, without a barrier between them (plan::Stream). Hands
/// over each iteration when it is complete, in order. Throws Error as simulate() does.
StreamFacts simulate_stream(const Plan& plan, const plan::Stream& stream,
                            const std::function<void(const StreamedIteration&)>& sink,
                            const plan::WeatherOfIteration& at = {});

/// One iteration of a run in virtual time.
struct PlayedIteration {
  Duration begin{};  ///< since the start of the weather
  Duration makespan{};
};

/// A setting from an iteration on that no lane can have begun, chosen from an iteration that is
/// complete; nullopt: all stays as it is.
using StreamSteering = std::function<std::optional<plan::StreamSetting>(const StreamedIteration&)>;
/// The same with a controller beside it: one stream, without a gap. Throws Error also where a
/// setting is of an iteration that has begun.
StreamFacts simulate_steered_stream(const Plan& plan, const plan::Stream& stream,
                                    const StreamSteering& steering,
                                    const plan::WeatherOfIteration& at = {});

/// Runs `count` iterations of a plan back to back under its weather, the first at its start: each
/// begins when the one before has ended on all ranks. Throws Error if the plan deadlocks, or if the
/// run would last beyond 2^61 ns (73 years).
[[nodiscard]] std::vector<PlayedIteration> play_iterations(const Plan& plan,
                                                           const plan::Weather& weather, int count);

}  // namespace longhaul::sim
