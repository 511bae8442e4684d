#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "trace/export/export.hpp"
#include "trace/export/text_writer.hpp"
#include "trace/report/report.hpp"
#include "trace/timeline/iteration_view.hpp"

namespace longhaul::trace {
namespace {

/// When a block changes the activation memory of its rank, and by how much.
struct Change {
  std::int64_t time_ns, bytes;
};

/// Changes of one rank's memory, in order of time; at one time in the order of the blocks.
std::vector<Change> changes_of(const IterationView& view, std::size_t rank) {
  std::vector<Change> changes;
  for (const std::size_t i : view.blocks[rank]) {
    const TimelineRow& row = view.rows[i];
    if (row.size_bytes == 0) continue;
    changes.push_back({row.size_bytes > 0 ? row.start_ns : row.end_ns, row.size_bytes});
  }
  std::ranges::stable_sort(changes, {}, &Change::time_ns);
  return changes;
}

void print_iteration(TextWriter& out, const Source& source, const IterationKey& key) {
  const IterationView view{rows_of(*source.timeline, key.schedule, key.iteration)};
  const std::string schedule = csv_cell(source.timeline->schedules[at(key.schedule)]);
  for (std::size_t rank = 0; rank < view.blocks.size(); ++rank) {
    std::int64_t held_bytes = 0;
    for (const Change& change : changes_of(view, rank)) {
      held_bytes = saturating_sum(held_bytes, change.bytes);
      out.print("{},{},{},{},{},{},{}\n", source.name, schedule, key.iteration, rank,
                view.rows[view.blocks[rank].front()].device, change.time_ns, held_bytes);
    }
  }
}

}  // namespace

void export_memory(const Trace& trace, const Selection& selection, std::ostream& out) {
  require_rows(trace, selection);
  TextWriter writer{out, std::numeric_limits<std::int64_t>::max()};
  writer.print("source,schedule,iteration,rank,device,time_ns,activation_bytes\n");
  for (const Source& source : sources_of(trace)) {
    for (const IterationKey& key : selected_iterations(source, selection))
      print_iteration(writer, source, key);
  }
  writer.flush();
}

}  // namespace longhaul::trace
