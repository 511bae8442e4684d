#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/statistics/sample.hpp"
#include "report/traced_schedules.hpp"

namespace longhaul::report {

/// Ops whose timelines one page shows: it then has less than 5 MB.
inline constexpr std::size_t kMostOps = 100'000;

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

/// `source` is what people call it.
[[nodiscard]] ReportedRun reported_run(const std::string& source, trace::Trace trace);
/// Those of run number `index`, in its order, or `only` (empty: all).
[[nodiscard]] std::vector<ReportedSchedule> reported_schedules(const ReportedRun& run,
                                                               std::size_t index,
                                                               const std::string& only = {});
/// {"name", "creator", "git_commit", "command_line", "scenario", "environment", "time_scale"}
[[nodiscard]] nlohmann::ordered_json run_json(const ReportedRun& run);

/// The answer in five sentences: what was asked, what won, by how much, how true it is, and what
/// limits it. `schedules` of all runs, the fastest first; not empty.
[[nodiscard]] std::vector<std::string> answer_in_words(
    const std::vector<ReportedRun>& runs, const std::vector<ReportedSchedule>& schedules);

/// What one page shows of runs: a title, and what page.js reads.
struct RunPage {
  std::string title;
  nlohmann::ordered_json data;  ///< with "sentences" and "schedules", the fastest first
};
/// Throws Error where no iteration of a schedule is finished. Of all schedules, or of `only`.
[[nodiscard]] RunPage run_page(const std::vector<ReportedRun>& runs, const std::string& only = {});

/// A run leaves the page of a larger trace to `longhaul report`.
inline constexpr std::uint64_t kMostRowsAtEnd = 2'000'000;
/// Writes `directory`/report.html of its trace.h5, at the end of a run. Where that cannot be it
/// says why, in a line for people, and the run is what it was.
[[nodiscard]] std::string write_page_of_run(const std::filesystem::path& directory);
/// That line: why a run's `page` is not there.
[[nodiscard]] std::string left_out_text(const std::filesystem::path& page,
                                        const std::filesystem::path& directory,
                                        std::string_view why);

/// Columns of the ops of one iteration, predicted and measured (page/data.js reads them): arrays of
/// little-endian numbers in base64. Times are in `unit_ns`, which is 1 below 4.29 s.
[[nodiscard]] nlohmann::ordered_json timeline_json(const ReportedRun& run,
                                                   const ReportedSchedule& schedule);

}  // namespace longhaul::report
