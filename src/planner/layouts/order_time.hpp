#pragma once

#include <vector>

#include "planner/layouts/layout_times.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::planner {

/// The makespan of a static order with these times: the nanosecond that the simulator gives for the
/// layout's scenario, without its plan. Blocks run in the order of their rows; messages of one
/// ordered pair of devices share its link in the order in which they are produced.
class OrderTimer {
public:
  [[nodiscard]] Duration makespan(const Layout& layout, const LayoutTimes& times);
  [[nodiscard]] std::int64_t blocks() const { return blocks_; }  ///< played so far

private:
  const Schedule& schedule_for(const Layout& layout, const LayoutTimes& times);

  Schedule schedule_;  ///< the last one: neighbours of a search often have the same
  LayoutOrder order_ = LayoutOrder::gpipe;
  bool has_recompute_ = false;
  std::int64_t blocks_ = 0;
  std::vector<std::int64_t> forward_, gradient_;  ///< arrival of a block's input, by chunk and M
};

/// No makespan of a layout is below this: a device's work after the shortest way to it, and the
/// shortest way back after its last backward.
[[nodiscard]] Duration least_makespan(const Layout& layout, const LayoutTimes& times);

}  // namespace longhaul::planner
