#pragma once

#include <string>
#include <vector>

#include "cli/command/commands.hpp"
#include "prefill/bubbles.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::cli {

/// One schedule of --schedule, simulated, and the bubbles of its training GPUs.
struct SimulatedBubbles {
  Schedule schedule;
  prefill::IterationBubbles iteration;
  int cell = 1;  ///< C, pipelines of a DP-cell: parallel.cell, or the schedule's
};

/// Of every schedule that was asked for. Throws Error where one is refused.
[[nodiscard]] std::vector<SimulatedBubbles> simulated_bubbles(const Options& options,
                                                              const Scenario& scenario);

/// Bubbles of a table, as text and JSON of `longhaul bubbles`.
[[nodiscard]] std::string bubbles_text(const std::vector<SimulatedBubbles>& all, TableWidth width);
[[nodiscard]] nlohmann::ordered_json bubbles_json(const SimulatedBubbles& bubbles);

}  // namespace longhaul::cli
