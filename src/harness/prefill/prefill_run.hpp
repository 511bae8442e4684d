#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/ranks.hpp"
#include "harness/prefill/planned_stretches.hpp"
#include "harness/prefill/real_stretches.hpp"
#include "harness/prefill/stretch_outcome.hpp"

namespace longhaul::harness {

/// What was checked in a pair, on all ranks (engine::Checks).
struct PairChecks {
  std::int64_t wrong = 0, messages = 0, blocks = 0;
};

/// Two stretches of a run, back to back.
struct StretchPair {
  bool prefill_first = false;
  StretchOutcome with{}, without{};
  StretchOutcome predicted{};  ///< of the one with
  PairChecks checks{};
  bool is_whole = true;  ///< false: the run was stopped after the one with, and played none without
};

/// What all ranks played; pairs are on rank 0.
struct PrefillRun {
  std::vector<StretchPair> pairs;
  /// To each request that was answered, by the clock of requests; and as predicted, on rank 0.
  std::vector<prefill::Decision> answers, predicted_answers;
  std::vector<prefill::Decision> cancelled;  ///< of a live run: their sender went before they began
  std::vector<prefill::Decision> failed;     ///< likewise: the controller that had them was gone
  /// Ids of all that asked, as the file, the backlog or the socket counts them: each is to have one
  /// answer.
  std::vector<std::int64_t> offered;
  std::int64_t wrong = 0, messages = 0, blocks = 0;  ///< of all ranks (engine::Checks)
  std::string wrong_kinds;                           ///< of `wrong`, in words
  bool is_stopped = false;                           ///< by SIGTERM, before the last pair was over
  std::optional<RealStretches::Results> real;        ///< of real layers, on rank 0
};

/// What a simulation of a live run says of it: its stretches with prefill, pair by pair, and an
/// answer to each request. On rank 0; empty where a plan says it.
struct LivePrediction {
  std::vector<FilledStretch> stretches;
  std::vector<prefill::Decision> answers;
  std::vector<std::int64_t> offered;  ///< PrefillRun::offered
};

/// Where rows go: of stretches without prefill as iterations of schedule 0, of those with as those
/// of schedule 1. nullptr: nowhere.
using StretchKeeper = std::function<void(bool with_prefill, int pair, const Plan& plan,
                                         const engine::IterationResult& result)>;

/// Hears of each pair that is over, warm-up included: of those that count, the last one is the
/// last of `pairs`, which are on rank 0. Of half a pair it does not hear.
using PairListener = std::function<void(const std::vector<StretchPair>& pairs)>;

/// Pairs that an earlier part of a planned run has finished: the number on all ranks, the rest on
/// rank 0, without what is predicted of them.
struct EarlierPairs {
  int count = 0;
  std::vector<StretchPair> pairs;
};

/// Collective: plays pairs of stretches, the one with prefill first or second as the seed says.
/// What a pair needs is made before it, and its rows are kept after it. `offset` moves this rank's
/// stamps to rank 0's clock. Goes on after `earlier`, with a warm-up of its own. Told to drain
/// (Watchdog::drain_on_signal), it ends with the stretch that is played; where no stretch with
/// prefill was measured, the run ends as by any signal.
[[nodiscard]] PrefillRun run_pairs(engine::Ranks& ranks, const PlannedStretches& planned,
                                   const LivePrediction& predicted, const PrefillSettings& settings,
                                   Duration offset, const EarlierPairs& earlier,
                                   const StretchKeeper& keep, const PairListener& pair_done);

}  // namespace longhaul::harness
