#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "trace/export/export.hpp"
#include "trace/report/report.hpp"

namespace longhaul::trace {

std::array<Source, 2> sources_of(const Trace& trace) {
  return {Source{"predicted", &trace.predicted, false}, Source{"measured", &trace.measured, true}};
}

std::vector<IterationKey> selected_iterations(const Source& source, const Selection& selection) {
  std::vector<IterationKey> keys = iterations_of(*source.timeline);
  std::erase_if(keys, [&](const IterationKey& key) {
    const auto& names = source.timeline->schedules;
    const std::string& name = names[at(key.schedule)];
    if (selection.schedule && name != *selection.schedule) return true;
    return source.measured && selection.iteration && key.iteration != *selection.iteration;
  });
  return keys;
}

std::size_t count_rows(const Source& source, const Selection& selection) {
  std::size_t rows = 0;
  for (const auto& [schedule, iteration] : selected_iterations(source, selection))
    rows += rows_of(*source.timeline, schedule, iteration).size();
  return rows;
}

void require_rows(const Trace& trace, const Selection& selection) {
  const auto sources = sources_of(trace);
  const bool any = std::ranges::any_of(sources, [&](const Source& source) {
    return !selected_iterations(source, selection).empty();
  });
  if (!any)
    fail(
        "nothing to export (the trace holds no rows of that schedule and iteration). "
        "See `longhaul trace` for what it holds.");
}

}  // namespace longhaul::trace
