#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trace/file/trace_file.hpp"

namespace longhaul::trace {

/// The part to export; absent: everything.
struct Selection {
  std::optional<std::string> schedule;  ///< by its name: either timeline has its own positions
  std::optional<int> iteration;         ///< of what was measured; a prediction has only one
  /// Viewers refuse larger files, so more than this is an error (Chrome format only).
  std::int64_t most_bytes = 250'000'000;
};

/// Chrome / Perfetto JSON: process = datacenter (predicted apart from measured), thread = rank and
/// lane, arguments = microbatch, chunk, size; flow arrows join send and arrival of a message.
/// Iterations follow one another, and each prediction stands above the first of its schedule.
/// Throws Error if the selection is too large.
/// Every export throws Error where nothing is selected.
void export_chrome(const Trace& trace, const Selection& selection, std::ostream& out);
/// One line per row, header first, names written out, source column `measured` or `predicted`.
void export_csv(const Trace& trace, const Selection& selection, std::ostream& out);
/// CSV of activation memory over time: for every rank one line per change, with what it holds from
/// then on. A block takes (positive size) at its start and releases (negative) at its end, so the
/// largest value is the peak of IterationReport.
void export_memory(const Trace& trace, const Selection& selection, std::ostream& out);

/// One of the two timelines of a trace.
struct Source {
  const char* name;
  const Timeline* timeline;
  bool measured;
};
/// Predicted first, as reports show them.
[[nodiscard]] std::array<Source, 2> sources_of(const Trace& trace);

/// The iterations of a source that are selected.
[[nodiscard]] std::vector<IterationKey> selected_iterations(const Source& source,
                                                            const Selection& selection);
[[nodiscard]] std::size_t count_rows(const Source& source, const Selection& selection);
/// Throws Error if nothing is selected at all.
void require_rows(const Trace& trace, const Selection& selection);

}  // namespace longhaul::trace
