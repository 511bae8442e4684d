#pragma once

#include "comm/group/board.hpp"

namespace longhaul {

/// The GPU of this rank, among those that its process sees: one each as long as there are enough,
/// then shared by neighbours, as seats_of has it (host/seat.hpp). 0 where there are none.
[[nodiscard]] int accelerator_of(const Board& board);

}  // namespace longhaul
