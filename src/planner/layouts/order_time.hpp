#pragma once

#include <cstdint>
#include <memory>
#include <optional>
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

/// Is it one order of whole blocks for all replicas, whose messages go as they are produced?
[[nodiscard]] bool is_plain_order(const Schedule& schedule);
/// The makespan of such a schedule, as OrderTimer has it of a static one.
[[nodiscard]] Duration play_order(const Schedule& schedule, const LayoutTimes& times);

/// A schedule that was made for the times, links and memory of a layout.
struct AwareOrder {
  std::shared_ptr<const Schedule> schedule;
  Duration makespan{};
  Bytes memory;  ///< of the GPU that holds most
};
/// nullopt: its generator does not define one there, or not within the memory. Deterministic: the
/// search of `best` takes kMovesOfBest moves over orders of one stage a device, of one replica.
[[nodiscard]] std::optional<AwareOrder> make_aware_order(const LayoutProblem& problem,
                                                         const Layout& layout,
                                                         const LayoutTimes& times);
inline constexpr std::int64_t kMovesOfBest = 2000;

/// No makespan of a layout is below this: a device's work after the shortest way to it, and the
/// shortest way back after its last backward. It holds for every order of the layout's blocks; of
/// `atlas`, whose pipelines lend each other their links, messages take the latency alone.
[[nodiscard]] Duration least_makespan(const Layout& layout, const LayoutTimes& times);
/// The same of every order of its operators, wherever chunks of them go and however backwards are
/// split: one microbatch all the way, and a device's share of all work.
[[nodiscard]] Duration least_of_any_order(const Layout& layout, const LayoutTimes& times);

}  // namespace longhaul::planner
