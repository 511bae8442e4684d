#pragma once

#include <optional>
#include <span>
#include <unordered_map>

#include "trace/hdf5/row_source.hpp"
#include "trace/validate/check_context.hpp"
#include "trace/validate/check_messages.hpp"
#include "trace/validate/external_sort.hpp"

namespace longhaul::trace {

/// An op that holds a resource against others.
struct ResourceHold {
  std::int32_t resource;
  std::int32_t exclusion;  ///< the rank of a collective, whose members hold resources together
  std::int64_t start_ns, end_ns, op;
  std::int32_t rank;
};
struct ResourceHoldLess {
  bool operator()(const ResourceHold& a, const ResourceHold& b) const;
};

/// No two transfers hold one resource at a time, nor do two collectives of one rank, nor, where
/// some lane's ops may pass each other, blocks and prefills. Of one iteration.
class ResourceCheck {
public:
  ResourceCheck(const CheckContext& context, IterationKey key)
      : context_{context}, key_{key}, holds_{context.sort_bytes} {}
  void add(const TimelineRow& row, bool some_in_any_order);
  [[nodiscard]] Diagnostics finish();

private:
  const CheckContext& context_;
  IterationKey key_;
  ExternalSort<ResourceHold, ResourceHoldLess> holds_;
};

/// The rules about rows of one iteration. Rows come in order, once; what needs another look, which
/// a sound iteration without relays does not, is read again from the source. Holds no rows: memory
/// grows with the ranks and with `sort_bytes` alone.
class IterationCheck {
public:
  /// `first` is where the iteration begins in `source`.
  IterationCheck(const CheckContext& context, IterationKey key, RowSource& source,
                 std::uint64_t first)
      : context_{context},
        key_{key},
        source_{source},
        first_{first},
        messages_{context, key},
        resources_{context, key} {
    for (const std::string& lane : context.names->lanes) {
      any_order_.push_back(lane.ends_with(kAnyOrder));
      some_in_any_order_ = some_in_any_order_ || any_order_.back();
    }
  }

  /// The next rows, whose values are sound.
  void add(std::span<const TimelineRow> rows);
  /// Call once, after the last row. Diagnostics go by rule.
  [[nodiscard]] Diagnostics finish();

private:
  struct Place {
    std::int32_t datacenter, device, replica;
    std::int64_t op;           ///< that was seen first
    std::int32_t last_device;  ///< of the row that was seen last
  };

  /// False: the rest of the iteration cannot be checked.
  bool check_order(const TimelineRow& row, const TimelineRow& before);
  void check_lane(const TimelineRow& row, const TimelineRow& before);
  void check_place(const TimelineRow& row);
  void note_bound(const TimelineRow& row);
  [[nodiscard]] bool ranks_fit() const;
  [[nodiscard]] Diagnostics first_rank_beyond();
  [[nodiscard]] Diagnostics check_bounds();
  [[nodiscard]] Diagnostics bounds_without_op();
  [[nodiscard]] Diagnostics check_pieces();

  const CheckContext& context_;
  IterationKey key_;
  RowSource& source_;
  std::uint64_t first_, count_ = 0;
  std::vector<bool> any_order_;  ///< by lane: may its ops pass each other?
  bool some_in_any_order_ = false;
  std::optional<TimelineRow> last_;      ///< of those that were added
  std::optional<TimelineRow> last_ran_;  ///< of those that ran
  std::int64_t first_op_ = 0;
  std::int64_t least_bound_ = INT64_MAX, largest_bound_ = -1;  ///< of ops that rows are bound by
  std::int32_t highest_rank_ = 0;
  bool has_pieces_ = false;
  std::unordered_map<std::int32_t, Place> places_;  ///< by rank
  Place* place_ = nullptr;                          ///< of the last row's rank
  MessageCheck messages_;
  ResourceCheck resources_;
  Diagnostics order_, lanes_, in_places_;
};

}  // namespace longhaul::trace
