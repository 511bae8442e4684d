#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "trace/rank_clock.hpp"
#include "trace/timeline.hpp"

namespace longhaul {

inline constexpr int kTraceSchemaVersion = 2;

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
/// a temporary name: throws Error if `file` exists, and leaves no half-written file behind.
void write_trace(const std::filesystem::path& file, const Trace& trace);
/// Throws Error on anything but a trace that validates.
[[nodiscard]] Trace read_trace(const std::filesystem::path& file);
/// What is wrong with a file, worded for people; empty: it is a trace, each column present and of
/// one length, indices within their tables, start <= end, no lane or resource used against its
/// rules, both sides of every message present.
[[nodiscard]] std::vector<std::string> validate_trace(const std::filesystem::path& file);

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
/// The iterations of which every rank's segment is there, in order. Goes by the files' names alone.
[[nodiscard]] std::vector<IterationKey> finished_iterations(const std::filesystem::path& directory);
/// Everything that is finished: iterations of which every rank's segment is there. Times within an
/// iteration are moved so that its first op on any rank starts at 0. Ignores half-written files.
/// `clocks` has an entry for each rank, where they were compared at both ends of the run.
[[nodiscard]] Trace merge_run(const std::filesystem::path& directory,
                              std::span<const RankClock> clocks = {});

}  // namespace longhaul
