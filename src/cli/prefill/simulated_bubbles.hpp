#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "cli/command/commands.hpp"
#include "plan/plan.hpp"
#include "prefill/bubbles/bubbles.hpp"
#include "schedule/schedule.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::cli {

/// One schedule of --schedule, simulated, and the bubbles of its training GPUs.
struct SimulatedBubbles {
  Schedule schedule;
  prefill::IterationBubbles iteration;
  int cell = 1;  ///< C, pipelines of a DP-cell: parallel.cell, or the schedule's
  Plan plan;
  OpTimes times;  ///< of one iteration of it
};

[[nodiscard]] SimulatedBubbles bubbles_of(const Schedule& schedule, const Scenario& scenario,
                                          Arrangement arrangement);
/// The same, where a schedule that cannot run is an answer.
[[nodiscard]] Result<SimulatedBubbles> try_bubbles_of(const Schedule& schedule,
                                                      const Scenario& scenario,
                                                      Arrangement arrangement);
/// Of every schedule that was asked for. Throws Error where one is refused.
[[nodiscard]] std::vector<SimulatedBubbles> simulated_bubbles(const Options& options,
                                                              const Scenario& scenario);

/// Bubbles of a table, as text and JSON of `longhaul bubbles`.
[[nodiscard]] std::string bubbles_text(const std::vector<SimulatedBubbles>& all, TableWidth width);
[[nodiscard]] nlohmann::ordered_json bubbles_json(const SimulatedBubbles& bubbles);

/// `longhaul bubbles --trace RUN`: those of measured rows, and how far the prediction was off.
[[nodiscard]] Answer measured_bubbles_command(const Options& options);

}  // namespace longhaul::cli
