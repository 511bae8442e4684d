#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "base/listed_enum.hpp"
#include "plan/link_model/weather.hpp"
#include "prefill/accounts/idle_causes.hpp"
#include "prefill/placement.hpp"
#include "prefill/play/training_graph.hpp"

namespace longhaul::prefill {

/// What a rank goes by when it starts what it was given: the plan's times from the iteration's
/// begin; signals alone (a bubble is as long as it was in the iteration before); or the plan, with
/// every start and end that ranks have published by then.
#define LONGHAUL_SIGNALS(X) X(both, "both") X(plan, "plan") X(signals, "signals")
LONGHAUL_LISTED_ENUM(Signals, LONGHAUL_SIGNALS);

/// What becomes of a prefill that still runs when the next block of training is ready.
#define LONGHAUL_OVERRUNS(X) X(finish, "finish") X(kill, "kill")
LONGHAUL_LISTED_ENUM(Overrun, LONGHAUL_OVERRUNS);

/// What really happens in a run, which no controller knows ahead.
struct PlayedTimes {
  /// Of a block in an iteration: factor on its time.
  std::function<double(OpId op, DeviceId device, int iteration)> block_factor;
  /// Of a pass of a request that takes `estimate`.
  std::function<Duration(std::int64_t request, Duration estimate)> prefill_time;
  const plan::Weather* weather = nullptr;
};

struct PlayOptions {
  Signals signals = Signals::both;
  Overrun overrun = Overrun::finish;
  bool careless = false;  ///< a rank starts what it was given whenever it is idle
  std::int64_t iterations = 1;
};

/// What a played run came to.
struct PlayOutcome {
  Duration wall{};                ///< of all iterations
  Duration busy{}, filled{};      ///< GPU time of blocks and of prefills, in it
  Duration delay{};               ///< `wall` beyond the same run without prefills
  std::int64_t blocks_bound = 0;  ///< that a prefill on their GPU kept waiting
  std::int64_t blocks_late = 0;   ///< that started later than in the run without prefills
  std::int64_t killed = 0;
  std::int64_t late = 0;      ///< done later than they were to be, or than their SLO
  std::int64_t declined = 0;  ///< times that a rank would not start what it was given
  std::vector<std::vector<PrefillSpan>> blocks, prefills;  ///< when each GPU computed them
  /// When each would not start what it was given, until the next block.
  std::vector<std::vector<KnownIdle>> declined_idle;
  std::vector<Decision> decisions;  ///< with the times that were played
};

/// Plays training and what the controller placed, in order of time. Placed prompts keep their GPUs
/// and their order there. A rank has the last word: it starts nothing that would end after the
/// next block's earliest start as it knows it then (less the guard); such a prompt waits for the
/// next bubble.
[[nodiscard]] PlayOutcome play_prefills(const TrainingGraph& graph,
                                        const std::vector<Served>& served,
                                        const std::vector<Decision>& decisions,
                                        const PlayedTimes& times, const PlayOptions& options);

}  // namespace longhaul::prefill
