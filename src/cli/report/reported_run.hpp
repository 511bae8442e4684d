#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/statistics/sample.hpp"
#include "cli/trace/trace_source.hpp"

namespace longhaul::cli {

/// A schedule of a run, in the times of its trace.
struct ReportedSchedule {
  std::size_t run = 0;  ///< index into the runs
  std::string name;
  SampleSummary measured;  ///< of makespans in ns; n == 0: none
  std::optional<double> predicted_ns;
  std::optional<double> bubble;  ///< mean over ranks; measured where it was, otherwise predicted
  std::optional<int> shown;      ///< the measured iteration nearest the median
  std::size_t ops = 0;           ///< of an iteration

  /// The measured median, or the prediction where nothing was measured.
  [[nodiscard]] double time_ns() const;
  /// Of the measured median from the prediction, in percent.
  [[nodiscard]] std::optional<double> difference_percent() const;
};

/// A run as `longhaul report` reads it.
struct ReportedRun {
  std::string name;  ///< as the user gave it
  trace::Trace trace;
  std::optional<Scenario> scenario;  ///< where the trace's text can be read
  std::string scenario_name = "-";
};

/// Throws Error as load_trace() does.
[[nodiscard]] ReportedRun reported_run(const std::string& source, const Options& options);
/// Those of run number `index`, in its order.
[[nodiscard]] std::vector<ReportedSchedule> reported_schedules(const ReportedRun& run,
                                                               std::size_t index,
                                                               const Options& options);
/// {"name", "creator", "git_commit", "command_line", "scenario", "environment", "time_scale"}
[[nodiscard]] nlohmann::ordered_json run_json(const ReportedRun& run);

/// The answer in five sentences: what was asked, what won, by how much, how true it is, and what
/// limits it. `schedules` of all runs, the fastest first; not empty.
[[nodiscard]] std::vector<std::string> answer_in_words(
    const std::vector<ReportedRun>& runs, const std::vector<ReportedSchedule>& schedules);

/// Columns of the ops of one iteration, predicted and measured (page/data.js reads them): arrays of
/// little-endian numbers in base64. Times are in `unit_ns`, which is 1 below 4.29 s.
[[nodiscard]] nlohmann::ordered_json timeline_json(const ReportedRun& run,
                                                   const ReportedSchedule& schedule);

}  // namespace longhaul::cli
