#pragma once

#include <filesystem>
#include <optional>

#include "trace/file/trace_file.hpp"
#include "trace/hdf5/hdf5_timeline.hpp"

namespace longhaul::hdf5 {

/// A trace whose rows are read piece by piece.
class TraceReader {
public:
  /// Parts that cannot be read go to `findings`; only without any may the groups be asked for.
  TraceReader(const std::filesystem::path& file, Diagnostics& findings);

  [[nodiscard]] const RunInfo& info() const { return info_; }
  [[nodiscard]] const TimelineReader& measured() const { return *measured_; }
  [[nodiscard]] const TimelineReader& predicted() const { return *predicted_; }

private:
  std::optional<Handle> file_;
  RunInfo info_;
  std::optional<TimelineReader> measured_, predicted_;
};

/// Adds what is wrong with the rows of an open trace; or, where some cannot be read, with those.
void check_groups(const TraceReader& reader, Diagnostics& findings);
/// Throws Error with the first of the findings, if there are any.
void require_none(const std::filesystem::path& file, const Diagnostics& findings);

}  // namespace longhaul::hdf5
