#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/timeline/columns.hpp"
#include "trace/timeline/rank_clock.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

inline constexpr int kTraceSchemaVersion = 4;
/// The oldest that is read: what it lacks is what a row has by itself.
inline constexpr int kOldestTraceSchema = kFirstSchema;

/// Root attributes of a trace: where it comes from and how to read its times.
struct RunInfo {
  std::string creator;  ///< program and version
  std::string git_commit;
  std::string command_line;
  std::string scenario;                      ///< TOML text, overrides as comments
  std::string environment;                   ///< JSON: hosts, devices, library versions, load
  double time_scale = 1.0;                   ///< every time is as played
  std::int64_t activation_budget_bytes = 0;  ///< per device; 0: none
};

struct Trace {
  RunInfo info;
  Timeline measured;
  Timeline predicted;
};

/// One HDF5 file: groups `measured` and `predicted`, one chunked, compressed dataset per column of
/// TimelineRow, string tables beside them (docs/trace.md). Created exclusively and completed under
/// a temporary name: throws Error if `file` exists, and never leaves a half-written file.
void write_trace(const std::filesystem::path& file, const Trace& trace);
/// Throws Error on anything but a trace that validates.
[[nodiscard]] Trace read_trace(const std::filesystem::path& file);
/// Rows of kinds that this program does not know are left out; these sentences say so.
[[nodiscard]] std::vector<std::string> left_out_of(const Timeline& timeline, const char* group);
/// What sees the rows of a trace while they are validated; nullptr: nothing does.
class RowVisitor;
using VisitorOfTrace = std::function<RowVisitor*(const RunInfo&)>;
/// Faults of a file, worded for people; empty: it is a trace, each column present and of
/// one length, indices within their tables, start <= end, no lane or resource used against its
/// rules, both sides of every message present.
[[nodiscard]] std::vector<std::string> validate_trace(const std::filesystem::path& file,
                                                      const VisitorOfTrace& visitor_of = {});

/// Names one segment: what one rank did in one finished iteration of one schedule.
struct SegmentKey {
  int schedule = 0;  ///< position in the run's list
  int iteration = 0;
  int rank = 0;
};

/// A run's directory while it goes on: `run.h5` (attributes, predicted rows, expected ranks) once,
/// then one closed file per segment, written under a temporary name and renamed, so that a killed
/// run loses no finished iteration. Merging needs no MPI.
void begin_run(const std::filesystem::path& directory, const RunInfo& info,
               const Timeline& predicted, int ranks);
void write_segment(const std::filesystem::path& directory, const SegmentKey& key,
                   const Timeline& rows);
/// The same for several ranks at once, each of which may have no rows: those of a host, so that
/// there is one file a host, not one a rank.
void write_segment(const std::filesystem::path& directory, const IterationKey& key,
                   const std::vector<int>& ranks, const Timeline& rows);
/// The iterations of which every rank's rows are there, in order. Goes by the files' names alone.
[[nodiscard]] std::vector<IterationKey> finished_iterations(const std::filesystem::path& directory);
/// The same of a run of so many ranks: reads no file.
[[nodiscard]] std::vector<IterationKey> finished_iterations(const std::filesystem::path& directory,
                                                            int ranks);
/// Everything that is finished: iterations of which every rank's segment is there. Times within an
/// iteration are moved so that its first op on any rank starts at 0. Ignores half-written files.
/// `clocks` has an entry for each rank, where they were compared at both ends of the run.
[[nodiscard]] Trace merge_run(const std::filesystem::path& directory,
                              std::span<const RankClock> clocks = {});

struct MergeOptions {
  std::span<const RankClock> clocks{};
  /// The trace's text about the environment; absent: the facts known when the run began.
  std::optional<std::string> environment{};
  /// Adds rows to the prediction: of what was planned during the run. The timeline that it gets has
  /// the tables of names of the measured rows, which begin with those of the prediction, and no
  /// rows.
  std::function<void(Timeline& predicted)> add_predictions{};
};
struct MergedRows {
  std::uint64_t measured = 0, predicted = 0;
  std::uint64_t iterations_left_out = 0;  ///< of which all segments are there, and one is damaged
};
/// Writes what merge_run() gives to `file`, as write_trace() does, chunk by chunk: memory grows
/// with the number of segments of an iteration, not with their rows.
MergedRows merge_run_into(const std::filesystem::path& directory, const std::filesystem::path& file,
                          const MergeOptions& options = {});

/// A selection from a trace; nothing named: all of it.
struct TracePart {
  std::optional<std::string> schedule{};
  std::optional<int> iteration{};  ///< of measured rows: a prediction has but one
};

/// A trace's description of itself, without a row read. Throws Error on a file that is no trace.
struct TraceOverview {
  std::string creator;
  std::uint64_t measured_rows = 0, predicted_rows = 0;
  std::vector<std::string> notes{};  ///< left_out_of() both groups
};
[[nodiscard]] TraceOverview overview_of(const std::filesystem::path& file);

/// read_trace() of a part: only its rows are read, and held to the rules of a trace. Throws Error
/// if there are more than `most_rows` of them.
[[nodiscard]] Trace read_trace_part(const std::filesystem::path& file, const TracePart& part,
                                    std::uint64_t most_rows);

}  // namespace longhaul::trace
