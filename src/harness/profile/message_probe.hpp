#pragma once

#include <vector>

#include "base/units.hpp"
#include "engine/ranks.hpp"
#include "nn/memory.hpp"

namespace longhaul::harness {

/// Collective: times of one message of `count` numbers, one way, in ns: half of there and back
/// between ranks 0 and 1 while ranks 2 and 3, 4 and 5, ... do the same; on one rank, a copy within
/// the device. Rank 0 gets them. Throws Error where a message does not come within `patience`.
[[nodiscard]] std::vector<double> message_times(engine::Ranks& ranks, nn::TensorOps& math,
                                                std::size_t count, int samples, Duration patience);

}  // namespace longhaul::harness
