#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trace/hdf5/row_source.hpp"
#include "trace/timeline/diagnostics.hpp"
#include "trace/timeline/timeline.hpp"

namespace longhaul::trace {

/// Two stamps of measured rows may be apart by the stated errors of their two clocks, those of
/// hosts and of GPUs; `environment` is RunInfo's. 0 where one clock made all of them.
[[nodiscard]] std::int64_t measured_slack_ns(const std::string& environment);
/// Memory of each rule that has to sort the rows of an iteration; there are two.
inline constexpr std::size_t kSortBytes = std::size_t{128} << 20;

/// Sees rows while they are checked, in their order, each once: to read them again would cost as
/// much as the check. What it finds counts only where the rows have no faults.
class RowVisitor {
public:
  RowVisitor() = default;
  virtual ~RowVisitor() = default;
  RowVisitor(const RowVisitor&) = delete;
  RowVisitor& operator=(const RowVisitor&) = delete;

  /// Rows of a group follow. `names` has its tables, and lives until end().
  virtual void begin(const char* group, std::int64_t slack_ns, const Timeline& names) = 0;
  /// Rows of one iteration, each sound by itself; the next call may have more of it.
  virtual void add(std::span<const TimelineRow> rows) = 0;
  virtual void end() = 0;
};

/// Adds the faults of the rows of a timeline: indices outside their tables, times out of
/// order, lanes and resources used against their rules, messages that lack a side. `group` names
/// the timeline in texts; overlaps up to `slack_ns` are forgiven. Memory does not grow with the
/// rows: rows that rules have to sort wait in a temporary file.
void check_rows(RowSource& rows, const char* group, std::int64_t slack_ns, Diagnostics& findings,
                std::size_t sort_bytes = kSortBytes, RowVisitor* visitor = nullptr);
void check_rows(const Timeline& timeline, const char* group, std::int64_t slack_ns,
                Diagnostics& findings);

}  // namespace longhaul::trace
