#pragma once

#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/ranks.hpp"
#include "harness/options/pipeline_options.hpp"
#include "harness/options/stopping.hpp"
#include "harness/session/planned_overlap.hpp"
#include "harness/session/send_choice.hpp"
#include "planner/choose_schedules.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"
#include "sim/simulate.hpp"
#include "trace/file/trace_file.hpp"

namespace longhaul::harness {

/// Links that change while a run goes on: what the world does, whatever the ranks believe.
struct LinkChange {
  int iteration = 0;             ///< the first one on the new links; at least 1
  std::vector<std::string> set;  ///< overrides, as typed: "link.latency_ratio=2"
  Scenario scenario;             ///< from then on, as played; the changes before it included
};

/// A schedule as this rank runs it.
struct PlannedSchedule {
  Schedule schedule;
  Plan plan;
  OpTimes predicted;
  nlohmann::json planning;  ///< how it was found, in times of the model; null: it was generated
  std::shared_ptr<PlannedOverlap> overlap{};  ///< nullptr: blocks, without an overlap
};

/// What a run in two parts says of the second: who left before it.
struct SiteLeft {
  std::string site;
  int iteration = 0;  ///< the first one without it
  int ranks = 0;      ///< that left
  int idle = 0;       ///< that stayed and have no place in the rest's scenario
  Duration gap{};     ///< from the end of the part before to the first iteration of the rest
};

/// Input of a run, the same on all ranks.
struct PipelineInput {
  Scenario scenario;  ///< as played
  double time_scale = 1.0;
  int iterations = 0;
  int warmup = 0;
  StoppingRule stopping;  ///< `iterations` are the most that it allows
  std::vector<PlannedSchedule> schedules;
  std::vector<LinkChange> changes;                ///< of links while the run goes on, by iteration
  std::vector<planner::SkippedSchedule> skipped;  ///< why some of `static` are not run
  ComputeSettings compute;                        ///< how blocks are computed
  SendChoice sent;                                ///< of their messages
  std::optional<SiteLeft> left{};                 ///< before this part of a run
  bool goes_on = false;      ///< --resume, and --out holds a run of the same input
  bool is_complete = false;  ///< and nothing is left to run of it
  nlohmann::json asked;      ///< what the run's results depend on
  nlohmann::json handed;     ///< what rank 0 made of it for all ranks
};

/// Collective. Rank 0 reads the scenario, makes the schedules and hands both on as texts; every
/// rank lowers them itself. Schedules are made in the times of the model, so that they are those of
/// `longhaul schedule`, whatever the time_scale. The others wait for a search however long it
/// takes. Whatever is wrong becomes one CollectiveError before anything runs.
[[nodiscard]] PipelineInput prepare_input(engine::Ranks& ranks, const PipelineOptions& options,
                                          const planner::PlannerOptions& planner);

/// The predicted rows of all schedules.
[[nodiscard]] Timeline predicted_timeline(const PipelineInput& input);

}  // namespace longhaul::harness
