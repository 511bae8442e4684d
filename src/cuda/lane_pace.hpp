#pragma once

#include "base/clock.hpp"
#include "base/ids.hpp"

namespace longhaul::cuda {

/// How a payload in a device's memory goes: on a stream of the lane, which then stays held (by a
/// spin kernel, src/cuda/lane_pacer.hpp) until `hold` after the transfer's begin on
/// this side, by the device's clock (CrossPipe appendix F.1). The operation completes after that.
struct LanePace {
  LaneId lane{};     ///< of the plan: payloads of one lane go one after the other
  Duration hold{};   ///< nominal time of the transfer; 0: as long as it takes
  TimePoint from{};  ///< the transfer counts from here where it really began later; 0: it does not
};

}  // namespace longhaul::cuda
