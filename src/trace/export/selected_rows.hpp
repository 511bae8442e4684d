#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "trace/export/export.hpp"

namespace longhaul::trace {

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
