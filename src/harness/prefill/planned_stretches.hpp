#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/prefill/prefill_options.hpp"
#include "plan/plan.hpp"
#include "prefill/live/live_rank.hpp"
#include "prefill/lowering/filled_plan.hpp"
#include "prefill/lowering/row_idle.hpp"
#include "prefill/lowering/row_memory.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::harness {

/// A stretch with prefill, by plan or as a controller filled it.
struct FilledStretch {
  prefill::FilledPlan filled;
  OpResults predicted;
  /// Those of its prompts; times count from its begin, arrivals before it are negative.
  std::vector<prefill::Decision> decisions;
  std::vector<OpId> answers{};   ///< by decision, where a controller gave one while it was played
  std::vector<Duration> told{};  ///< by decision, likewise: when its request was first told of it
  prefill::LiveTally tally{};    ///< of all GPUs, likewise
  prefill::StretchDemand demand{};
};

/// A run of bench_prefill by plan, the same on all ranks. Requests arrive by a clock that goes on
/// while stretches with prefill do, and stands in those without: nothing runs in them.
struct PlannedStretches {
  Scenario scenario;  ///< as played, with its controller and decode ranks
  double time_scale = 1;
  Schedule schedule;
  Plan training;      ///< a stretch without prefill
  OpTimes predicted;  ///< of it, over calm links: what controllers know
  std::shared_ptr<const prefill::TrainingGraph> graph;  ///< of both
  prefill::IterationBubbles bubbles;
  std::vector<prefill::Served> served;
  std::shared_ptr<const prefill::MemoryBesideBlocks> memory;  ///< of a stretch
  std::vector<prefill::Request> requests;  ///< of the load; of a backlog, the file
  /// Of all stretches, by the clock of requests; none where the controller decides in the run.
  std::vector<prefill::Decision> decisions;
  Duration placement{};             ///< of this program's time, for each of them
  std::vector<bool> prefill_first;  ///< by pair, warm-up included: its order

  [[nodiscard]] Duration stretch_time() const { return bubbles.period; }
  /// Has some GPU a capacity?
  [[nodiscard]] bool limits_memory() const;
  /// Does some model send keys and values?
  [[nodiscard]] bool sends_kv() const;
  /// The stretch with prefill of a measured pair. Each is made when it is asked for.
  [[nodiscard]] FilledStretch fill(int pair, const PrefillSettings& settings) const;
};

/// `text`, the requests' file, is what `name` holds. Throws Error as reading and placing do.
[[nodiscard]] PlannedStretches plan_stretches(Scenario scenario, const std::string& schedule,
                                              const std::string& text, const std::string& name,
                                              const PrefillSettings& settings);

/// Throws Error where no datacenter has that name.
[[nodiscard]] DatacenterId datacenter_of(const Scenario& scenario, const GoneController& gone);

/// The scenario with the ranks that serve after those that train: one controller, and a decode
/// rank for each datacenter where a pipeline serves. Its own [[service]] ranks must be none.
[[nodiscard]] Scenario with_service_ranks(Scenario scenario, int cell);

}  // namespace longhaul::harness
