#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "trace/file/trace_file.hpp"
#include "trace/hdf5/hdf5_handle.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"
#include "trace/timeline/diagnostics.hpp"

namespace longhaul::trace::hdf5 {

/// The root attributes of an open file.
void write_run_info(Id file, const RunInfo& info);
[[nodiscard]] RunInfo read_run_info(Id file, std::uint64_t file_bytes, Diagnostics& findings);
/// The version of the schema of an open file. Throws Error on one that this program cannot read.
[[nodiscard]] std::int64_t read_schema(Id file);

/// A trace whose rows are read piece by piece.
class TraceReader {
public:
  /// Adds what cannot be read to `findings`. Precondition of asking for groups: it added none.
  TraceReader(const std::filesystem::path& file, Diagnostics& findings);

  [[nodiscard]] const RunInfo& info() const { return info_; }
  [[nodiscard]] const TimelineReader& measured() const { return *measured_; }
  [[nodiscard]] const TimelineReader& predicted() const { return *predicted_; }

private:
  std::optional<Handle> file_;
  RunInfo info_;
  std::optional<TimelineReader> measured_, predicted_;
};

/// Adds the faults of the rows of an open trace; where some cannot be read, the faults of those.
void check_groups(const TraceReader& reader, Diagnostics& findings, RowVisitor* visitor = nullptr);
/// Throws Error with the first of the findings, if there are any.
void require_none(const std::filesystem::path& file, const Diagnostics& findings);

}  // namespace longhaul::trace::hdf5
