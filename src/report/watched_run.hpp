#pragma once

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/listed_enum.hpp"

namespace longhaul::report {

/// File of a run's directory while the run goes on: one JSON object a line. Its lock says that a
/// process works there; it ends with the process, however that ends.
inline constexpr const char* kJournalName = "journal.jsonl";

/// The entries of a journal so far; a line that was cut short is left out.
[[nodiscard]] std::vector<nlohmann::json> read_journal(const std::filesystem::path& file);

/// The name of a curve of training: of all of its seeds and rates one.
[[nodiscard]] std::string curve_name(const std::string& what, const std::string& method, int seed,
                                     double rate);

/// What repeats in a run: iterations of a schedule, stretches of one side of a prefill run, or
/// exchanges of a curve of training.
struct WatchedSeries {
  std::string name;
  int done = 0;
  int total = 0;                    ///< at most, where the run ends by a rule; 0: not known
  std::vector<double> times_ns{};   ///< of each that is done, in the scenario's own times
  std::optional<double> mean_ns{};  ///< in place of `times_ns`, where a run knows no more
  std::optional<double> predicted_ns{};
  std::optional<double> loss{};  ///< the last one

  /// The median of the times, or their mean; nullopt: none is known.
  [[nodiscard]] std::optional<double> time_ns() const;
  /// Of time_ns() from the prediction.
  [[nodiscard]] std::optional<double> difference_percent() const;
};

/// The first entry of each part of a run, for those who watch it.
struct AnnouncedRun {
  std::string benchmark;
  std::string unit;                     ///< what its series count: "iteration"
  std::vector<WatchedSeries> series{};  ///< name, total, predicted_ns
  int series_total = 0;                 ///< with those that are not named yet
  int warmup = 0;                       ///< of each series, not counted in `done`
  bool ends_by_rule = false;            ///< totals are the most that there may be
  double time_scale = 1;                ///< times as played over the scenario's own
  int cores = 0;                        ///< of this host
};
[[nodiscard]] nlohmann::json entry_of(const AnnouncedRun& run);

/// A step of a series that is over, in times as played.
struct FinishedStep {
  int series = 0;  ///< from 0; one more than there are: a new one
  std::string name;
  int done = 0;                     ///< with this one; at most 0: warm-up
  std::optional<double> took_ns{};  ///< this one
  std::optional<double> mean_ns{};  ///< all so far, where single ones are not known
  std::optional<double> predicted_ns{};
  std::optional<int> total{};
  std::optional<double> loss{};
};
/// To be added to a journal under "watched"; with the time and the load of this host.
[[nodiscard]] nlohmann::json entry_of(const FinishedStep& step);

/// stale: begun, not finished, and no process works on it.
#define LONGHAUL_RUN_STATES(X) X(running, "running") X(stale, "stale") X(complete, "complete")
LONGHAUL_LISTED_ENUM(RunState, LONGHAUL_RUN_STATES);

/// A run's directory as those see it who watch it.
struct WatchedRun {
  RunState state = RunState::running;
  std::string benchmark, unit;
  std::vector<WatchedSeries> series;
  int series_total = 0;
  bool ends_by_rule = false;
  double load = 0;  ///< the largest that the run has seen
  int cores = 0;    ///< of the host with that load; 0: not known
  std::optional<std::chrono::milliseconds> since_last{};  ///< the last step's end
  std::optional<std::chrono::milliseconds> left{};        ///< about; nullopt: not known
};

/// Reads journal and record alone, no rows. Throws Error where `directory` is not there, holds no
/// run, or one whose files say nothing of its times.
[[nodiscard]] WatchedRun watched_run(const std::filesystem::path& directory);

}  // namespace longhaul::report
