#include "trace/export/slice_layout.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "trace/report/report.hpp"

namespace longhaul::trace {

SliceLayout::SliceLayout(const Trace& trace, const Selection& selection) {
  constexpr std::int64_t kGapShare = 20;  // a gap is a twentieth of the iteration before it
  const auto sources = sources_of(trace);
  for (const Source& source : sources) {
    if (!source.measured) continue;
    for (const IterationKey& key : selected_iterations(source, selection))
      first_measured_.try_emplace(key.schedule, key.iteration);
  }
  std::map<Slot, std::int64_t> lengths;
  for (const Source& source : sources) {
    for (const IterationKey& key : selected_iterations(source, selection)) {
      std::int64_t& length = lengths[slot_of(source, key)];
      for (const TimelineRow& row : rows_of(*source.timeline, key.schedule, key.iteration))
        length = std::max(length, row.end_ns);
    }
  }
  std::int64_t at = 0;
  for (const auto& [slot, length_ns] : lengths) {
    begin_ns_[slot] = at;
    at += length_ns + length_ns / kGapShare + 1;
  }
}

SliceLayout::Slot SliceLayout::slot_of(const Source& source, const IterationKey& key) const {
  const auto first = first_measured_.find(key.schedule);
  if (source.measured || first == first_measured_.end()) return key;
  return {key.schedule, first->second};
}

std::int64_t drawn_end_ns(const TimelineRow& row) {
  const bool message = row.kind == RowKind::send || row.kind == RowKind::recv;
  return message ? std::max(row.end_ns, row.start_ns + 1) : row.end_ns;
}

std::vector<int> threads_of_lanes(std::span<const TimelineRow> rows) {
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return std::tuple{rows[i].rank, rows[i].lane, rows[i].start_ns};
  });
  std::vector<int> threads(rows.size(), 0);
  std::vector<std::int64_t> busy_until;  // of each thread of the lane
  for (std::size_t k = 0; k < order.size(); ++k) {
    const TimelineRow& row = rows[order[k]];
    const bool same_lane =
        k > 0 && rows[order[k - 1]].rank == row.rank && rows[order[k - 1]].lane == row.lane;
    if (!same_lane) busy_until.clear();
    auto thread =
        std::ranges::find_if(busy_until, [&](std::int64_t end) { return end <= row.start_ns; });
    if (thread == busy_until.end()) thread = busy_until.insert(thread, 0);
    *thread = drawn_end_ns(row);
    threads[order[k]] = static_cast<int>(thread - busy_until.begin());
  }
  return threads;
}

}  // namespace longhaul::trace
