#pragma once

#include "runtime/host/board.hpp"
#include "runtime/transport/mpi/communicator.hpp"

namespace longhaul {

/// How this host's clock stands to rank 0's: local stamp + offset = stamp on rank 0's clock, give
/// or take `error`. For traces alone: nothing in the emulation compares clocks.
struct ClockOffset {
  Duration offset{};
  Duration error{};
};

enum class Measure { across_hosts, always };

/// Collective over `world`: ping-pongs of rank 0 with each rank; the shortest round trip counts and
/// half of it is the error. Ranks on rank 0's host share its clock: 0, unless measured `always`.
[[nodiscard]] ClockOffset measure_clock_offset(const mpi::Communicator& world, const Board& board,
                                               Measure which = Measure::across_hosts);

}  // namespace longhaul
