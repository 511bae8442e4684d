#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "planner/request.hpp"
#include "planner/sites/sites.hpp"
#include "schedule/generators/cell/atlas.hpp"

namespace longhaul::planner {

/// Times below which one DP-cell cannot end, by reason.
struct CellBound {
  std::int64_t compute = 0;  ///< a stage's work, between the way of the first microbatch to it and
                             ///< that of the last gradient from it
  std::int64_t wan = 0;   ///< all messages of a cell over one link, and the rest of one round trip
  std::int64_t path = 0;  ///< one microbatch there and back: blocks, transfers and latencies
  [[nodiscard]] std::int64_t largest() const;
};

/// Lower bounds of PP_time for placements that are built datacenter by datacenter, in constant time
/// for each stage added. For a placement that is not complete they hold for all that begin so. They
/// hold for every schedule that keeps to the order of a microbatch's blocks; sharper ones, of the
/// way to a stage and of links, where each device has one chunk and blocks are whole.
class PlacementBounds {
public:
  PlacementBounds(const GpuInventory& inventory, const ScheduleRequest& schedule, int pipelines,
                  int cells);

  struct State {
    int stages = 0;
    std::size_t last = 0;         ///< datacenter
    std::int64_t there = 0;       ///< of the first microbatch until after the last stage
    std::int64_t back = 0;        ///< of a gradient from there
    std::int64_t compute = 0;     ///< largest of the stages so far
    std::int64_t messages = 0;    ///< largest, of links: all messages but one
    std::int64_t all_reduce = 0;  ///< largest of the stages so far
  };
  [[nodiscard]] State extended(const State& state, DatacenterStages share) const;
  [[nodiscard]] CellBound bound(const State& state) const;
  /// Hops of the boundaries between the stages of a complete placement.
  [[nodiscard]] std::vector<schedule::LeastHop> hops(const StagePlacement& placement) const;

private:
  struct Hop {
    std::int64_t transfer = 0, latency = 0;
    [[nodiscard]] std::int64_t time() const { return transfer + latency; }
  };
  /// Times of a stage at the device's own speed.
  struct StageTime {
    std::int64_t forward = 0, back = 0;  ///< on the way of a microbatch
    std::int64_t work = 0;               ///< of a microbatch, before the last gradient leaves
    std::int64_t all_work = 0;           ///< the same with what may follow (W)
    std::int64_t all_reduce = 0;
  };

  void fill_stages(int replicas);
  void fill_rest();
  [[nodiscard]] Hop hop(DatacenterId from, DatacenterId to, StageId stage) const;
  [[nodiscard]] std::int64_t cheapest_exit(std::size_t from, StageId stage) const;

  const GpuInventory& inventory_;
  bool sharp_ = false;   ///< see above
  bool split_ = false;   ///< W may follow the last gradient
  bool pooled_ = false;  ///< the cell's pipelines share the WAN in time
  int pipelines_, cells_;
  std::vector<std::vector<StageTime>> stages_;          ///< by datacenter, stage
  std::vector<std::int64_t> rest_path_, rest_compute_;  ///< by first stage that is not placed
};

}  // namespace longhaul::planner
