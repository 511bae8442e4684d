#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "trace/export/export.hpp"

namespace longhaul::trace {

/// Where iterations lie in an exported picture: one after the other. The measured and the
/// predicted iterations of a schedule begin at the same time, so that they can be compared.
class SliceLayout {
public:
  SliceLayout(const Trace& trace, const Selection& selection);
  [[nodiscard]] std::int64_t begin_ns(const Source& source, const IterationKey& key) const {
    return begin_ns_.at(slot_of(source, key));
  }

private:
  using Slot = IterationKey;
  /// A prediction shares the slot of the first measured iteration. Both timelines of a run hold a
  /// schedule at the same position.
  [[nodiscard]] Slot slot_of(const Source& source, const IterationKey& key) const;

  std::map<int, int> first_measured_;  ///< iteration, by schedule
  std::map<Slot, std::int64_t> begin_ns_;
};

/// End of a slice as it is drawn: arrows need some length to hold on to.
[[nodiscard]] std::int64_t drawn_end_ns(const TimelineRow& row);

/// Slices of a thread must not overlap, but messages in flight do: for each row, which of several
/// threads of its lane draws it.
[[nodiscard]] std::vector<int> threads_of_lanes(std::span<const TimelineRow> rows);

}  // namespace longhaul::trace
