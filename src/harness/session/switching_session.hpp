#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "harness/session/adaptive_scheduler.hpp"
#include "harness/session/schedule_session.hpp"

namespace longhaul::harness {

/// Measurements of one schedule of the input, during whose run links and schedules change.
struct SwitchingOutcome {
  /// One for each segment of iterations that ran one schedule on the same links, in order. Their
  /// predictions are for the links that were played.
  std::vector<PipelineMeasurement> segments;
  std::vector<RunEvent> events;  ///< on rank 0
  /// Schedules of the segments after the first, in order; on rank 0.
  std::vector<std::shared_ptr<const PlannedSchedule>> plans;
};

/// Collective: runs schedule `position` of the input through its changes of links. The order of
/// blocks stays, unless it adapts: then rank 0 profiles each iteration, selects a schedule beside
/// the next ones, and hands it to all at the boundary of an iteration (CrossPipe 6.2). A segment is
/// named for how it came about: "best", "best+change@10" (other links), "best@14" (another order).
/// `next_position` counts the segments of the run that are not in the input.
[[nodiscard]] SwitchingOutcome run_switching(engine::Ranks& ranks, const PipelineInput& input,
                                             std::size_t position,
                                             const engine::EngineOptions& engine,
                                             const AdaptOptions& adapt, const PipelineSinks& sinks,
                                             int& next_position);

/// Options of adaptation from --adaptive and its companions.
[[nodiscard]] AdaptOptions adapt_options_of(const PipelineOptions& options,
                                            const PipelineSettings& settings);

/// Leaves nothing in the input but the schedule of the least prediction among those within their
/// budget (among all, if none is): what an adaptive run begins with.
void keep_best(PipelineInput& input);

/// Adds what was planned during the run to a prediction whose tables of names are those of the
/// measured rows.
void add_predictions(Timeline& predicted, const std::vector<SwitchingOutcome>& outcomes);

}  // namespace longhaul::harness
