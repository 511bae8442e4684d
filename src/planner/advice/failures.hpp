#pragma once

#include <cstdint>

#include "base/units.hpp"

namespace longhaul::planner {

/// GPUs that fail, and what is done about it; no `mtbf`: nothing fails.
struct Failures {
  Duration mtbf{};        ///< of one GPU: mean time between its failures
  Duration checkpoint{};  ///< that writing one takes, in which training stands
};

/// Share of the time on so many GPUs that goes into checkpoints, as far apart as Young has them (J.
/// W. Young, 1974: the square root of twice a checkpoint's time and the time between failures), and
/// into work that a failure undoes, half of such a distance: the square root of 2 checkpoint / mtbf
/// of all. Restarts are not counted. 1: training does not get on.
[[nodiscard]] double share_lost(const Failures& failures, std::int64_t gpus);

}  // namespace longhaul::planner
