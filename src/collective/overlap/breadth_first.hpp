#pragma once

#include "schedule/schedule.hpp"

namespace longhaul::collective {

/// The schedule with all microbatches of a chunk one after the other: forwards chunk by chunk, then
/// backwards chunk by chunk from the last on (Lamy-Poirier 2023), on the same devices. Valid for
/// any placement of one copy of the model.
[[nodiscard]] Schedule breadth_first(Schedule schedule);

}  // namespace longhaul::collective
