#pragma once

#include "comm/clock_alignment.hpp"
#include "comm/group/communicator.hpp"
#include "comm/group/host_ranks.hpp"

namespace longhaul::comm {

enum class Measure { across_hosts, always };

/// Collective over `world`: the lowest rank of each host exchanges 400 stamps with rank 0 (fewer
/// where that takes longer than half a second), and hands what it finds to the others of its host,
/// whose clock it is too. The shortest round trip counts. Rank 0 answered somewhere within it, so
/// that half of it bounds the error, however unlike the two ways. Ranks on rank 0's host share its
/// clock, and so do hosts of one kernel and time namespace: 0, unless each rank is measured
/// (`always`).
[[nodiscard]] ClockOffset measure_clock_offset(const Communicator& world,
                                               const HostRanks& host_ranks,
                                               Measure which = Measure::across_hosts);

}  // namespace longhaul::comm
