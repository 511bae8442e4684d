#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/index.hpp"
#include "trace/report/report.hpp"
#include "trace/timeline/iteration_view.hpp"

namespace longhaul::trace {

/// Adds up the bytes between datacenters, which go by their numbers in rows.
class TrafficTotals {
public:
  /// `bytes`: the sum that they are added to.
  void add_message(std::int32_t from, std::int32_t to, std::int64_t size,
                   std::int64_t Traffic::*bytes) {
    if (pair_ != std::pair{from, to} || last_ == nullptr) {
      pair_ = {from, to};
      last_ = &totals_[pair_];  // most messages go where the one before them went
    }
    last_->*bytes += size;
  }
  /// `rows`: of all members of collectives that are one op, each rank's in its own order.
  void add_collectives(std::span<const TimelineRow> rows);
  /// Pairs that send anything, in the order of `datacenters`.
  [[nodiscard]] std::vector<Traffic> named(std::span<const std::string> datacenters) &&;

private:
  std::map<std::pair<std::int32_t, std::int32_t>, Traffic> totals_;  ///< by from, to
  std::pair<std::int32_t, std::int32_t> pair_;
  Traffic* last_ = nullptr;
};

/// traffic_of() an iteration that has been looked at.
template <typename Rows>
[[nodiscard]] std::vector<Traffic> traffic_of(const IterationViewOf<Rows>& view,
                                              std::span<const std::string> datacenters) {
  TrafficTotals totals;
  for (const std::size_t i : view.sends) {
    const TimelineRow& row = view.rows[i];
    if (row.peer >= 0 && at(row.peer) < view.datacenters.size())
      totals.add_message(
          row.datacenter, view.datacenters[at(row.peer)], row.size_bytes,
          row.collective < 0 ? &Traffic::message_bytes : &Traffic::data_parallel_bytes);
  }
  std::vector<TimelineRow> collectives;
  for (const auto& part : view.collectives)
    if (part.collective < 0) collectives.push_back(view.rows[part.row]);
  totals.add_collectives(collectives);
  return std::move(totals).named(datacenters);
}

}  // namespace longhaul::trace
