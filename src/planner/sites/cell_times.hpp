#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/listed_enum.hpp"
#include "base/result.hpp"
#include "planner/request.hpp"
#include "planner/sites/sites.hpp"
#include "schedule/generators/cell/atlas.hpp"

namespace longhaul::planner {

/// A question to the simulator: one schedule on one layout.
struct CellQuery {
  ScheduleRequest schedule;  ///< not a file
  SiteLayout layout;
};

/// The times of one DP-cell by the simulator.
struct CellTime {
  Duration time{};      ///< PP_time
  double busy = 0;      ///< share of it in which a GPU computes, mean over the cell's GPUs
  std::string failure;  ///< why the schedule is not defined there; empty: it is
  std::optional<Refusal> missing_link;  ///< between neighbours in the placement
};

/// How the WAN of a cell is simulated; both are exact runs of their own plan. Pooled: a message
/// whole at the rate of all the cell's nodes, lower_pooled(). Relays: scatter, WAN, gather as ranks
/// do them, lower().
#define LONGHAUL_CELL_MODELS(X) X(pooled, "pooled") X(relays, "relays")
LONGHAUL_LISTED_ENUM(CellModel, LONGHAUL_CELL_MODELS);

/// Simulates DP-cells, each kind once: the time of a cell follows from its schedule, its size, the
/// stages and speeds along its placement and the links between them, not from which datacenters
/// these are. A cell inside one datacenter, or whose pipelines share nothing, is one pipeline.
class CellTimes {
public:
  /// `inventory` must outlive it. `threads`: 0 for all cores. `stopped`: asked before each cell,
  /// from many threads; true: it is not simulated, and its time is a failure. Empty: never.
  explicit CellTimes(const GpuInventory& inventory, CellModel model = CellModel::relays,
                     int threads = 0, std::function<bool()> stopped = {})
      : inventory_{inventory}, model_{model}, threads_{threads}, stopped_{std::move(stopped)} {}

  /// Times in the order of the queries; unknown ones are simulated, on all threads. Refused where
  /// neighbours in a placement have no link.
  Result<std::vector<CellTime>> try_times(std::span<const CellQuery> queries);
  /// The same where they have one; throws Error where not.
  [[nodiscard]] std::vector<CellTime> times(std::span<const CellQuery> queries) {
    return try_times(queries).or_throw();
  }

  /// A time before which the cell of the query does not end, from the orders that its schedule
  /// makes (least_time()); stops when it is `enough`. 0 where there is none. Safe to call from many
  /// threads.
  [[nodiscard]] Duration least_time(const CellQuery& query,
                                    std::span<const schedule::LeastHop> hops,
                                    Duration enough) const;

  [[nodiscard]] int threads() const { return threads_; }
  [[nodiscard]] std::int64_t simulated() const { return std::ssize(known_); }
  /// How many of the queries would have to be simulated.
  [[nodiscard]] std::size_t unknown(std::span<const CellQuery> queries) const;

private:
  using Key = std::vector<std::int64_t>;

  [[nodiscard]] Key key_of(const CellQuery& query) const;
  [[nodiscard]] Result<Scenario> scenario_of(const CellQuery& query) const;
  [[nodiscard]] CellTime simulate_cell(const CellQuery& query) const;

  const GpuInventory& inventory_;
  CellModel model_;
  int threads_;
  std::function<bool()> stopped_;
  std::vector<std::string> schedules_;  ///< what the keys call by number
  std::map<Key, CellTime> known_;
};

}  // namespace longhaul::planner
