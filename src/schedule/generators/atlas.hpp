#pragma once

#include <string_view>
#include <vector>

#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul {

/// A message on the WAN, in a generator's own estimate: all its pieces together.
struct TimedTransfer {
  OrderedMessage message;
  Duration start{};
  Duration end{};  ///< when the WAN is free for the next one; it arrives a latency later
  friend bool operator==(const TimedTransfer&, const TimedTransfer&) = default;
};

/// The times by which a generator of Varuna's or Atlas' kind decided. A Schedule keeps the order
/// alone; whoever runs it may start a block earlier, where rule 3 made it wait for its message's
/// turn.
struct Timetable {
  std::vector<std::vector<Duration>> starts;      ///< of the blocks of Schedule::rows
  std::vector<std::vector<TimedTransfer>> turns;  ///< index: as Schedule::link_orders
  Duration end{};                                 ///< of the last block or reduction
};

/// What generate(`name`, `scenario`) decided by. `name`: varuna, varuna-fill, atlas, atlas-timed,
/// atlas-even.
/// Throws as generate() does.
[[nodiscard]] Timetable timetable_of(std::string_view name, const Scenario& scenario);

}  // namespace longhaul
