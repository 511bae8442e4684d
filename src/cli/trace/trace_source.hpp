#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/command/commands.hpp"
#include "report/traced_schedules.hpp"

namespace longhaul::cli {

/// Reads a trace, or what is finished of a run's directory. Throws Error. Of a trace of more than
/// 16 million rows only what --schedule and --iteration select, and nothing if that is more still.
[[nodiscard]] trace::Trace load_trace(const std::filesystem::path& source,
                                      const Options& options = {});

using report::iteration_numbers;
using report::nearest_to_median;
using report::position_of;
using report::reports_of;
using report::scenario_of_trace;

/// Those of report::traced_schedules() that --schedule leaves.
[[nodiscard]] std::vector<std::string> traced_schedules(const trace::Trace& trace,
                                                        const Options& options);
/// Throws Error, which says what was measured, unless --iteration is absent or was measured of
/// each of the schedules.
void require_iteration(const trace::Trace& trace, const std::vector<std::string>& schedules,
                       const Options& options);

}  // namespace longhaul::cli
