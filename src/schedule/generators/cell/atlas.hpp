#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

struct Generator;

/// A message on the WAN, in a generator's own estimate: all its pieces together.
struct TimedTransfer {
  OrderedMessage message;
  Duration start{};
  Duration end{};  ///< when the WAN is free for the next one; it arrives a latency later
  friend bool operator==(const TimedTransfer&, const TimedTransfer&) = default;
};

/// The times by which a generator of Varuna's or Atlas' kind decided. A Schedule keeps the order
/// alone; a run may start a block earlier, where rule 3 made it wait for its message's
/// turn.
struct Timetable {
  std::vector<std::vector<Duration>> starts;      ///< of the blocks of Schedule::rows
  std::vector<std::vector<TimedTransfer>> turns;  ///< index: as Schedule::link_orders
  Duration end{};                                 ///< of the last block or reduction
};

/// The times by which a generator that has a timetable decided. Throws as generate() does.
[[nodiscard]] Timetable timetable_of(const Generator& generator, const Scenario& scenario);
/// The same by its name. Throws Error where it has none.
[[nodiscard]] Timetable timetable_of(std::string_view name, const Scenario& scenario);

/// Least time of a message over one boundary of a pipeline, to the next stage and home. On
/// the WAN the transfer is that over all nodes of the cell.
struct LeastHop {
  Duration transfer{}, latency{};
  Duration home_transfer{}, home_latency{};
};

/// A time before which no plan of the generator ends; above it at most by what
/// `hops` (index: stage before the boundary) and contention other than for turns leave out. Stops
/// when it is `enough`. The scenario holds one cell without gradient synchronisation. 0 where it
/// has no timetable; refused where it is not defined.
Result<Duration> least_time(const Generator& generator, const Scenario& scenario,
                            std::span<const LeastHop> hops, Duration enough);

}  // namespace longhaul::schedule
