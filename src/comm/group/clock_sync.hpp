#pragma once

#include <algorithm>
#include <cmath>

#include "base/clock.hpp"
#include "comm/group/communicator.hpp"
#include "comm/group/host_ranks.hpp"

namespace longhaul::comm {

/// Offset of this host's clock from rank 0's: local stamp + offset = stamp on rank 0's clock, give
/// or take `error`. For traces alone: nothing in the emulation compares clocks.
struct ClockOffset {
  TimePoint at{};  ///< the local stamp at which it was so
  Duration offset{};
  Duration error{};
};

/// Both ends of a run. Between them a clock is taken to drift at an even rate.
struct ClockAlignment {
  ClockOffset start;
  ClockOffset end;

  /// ns by which the offset grows in each ns of this clock; 0 before the end is known.
  [[nodiscard]] double drift() const {
    const Duration passed = end.at - start.at;
    if (passed <= Duration::zero()) return 0;
    return static_cast<double>((end.offset - start.offset).count()) /
           static_cast<double>(passed.count());
  }
  [[nodiscard]] Duration offset_at(TimePoint local) const {
    const auto passed = static_cast<double>((local - start.at).count());
    return start.offset + Duration{std::llround(drift() * passed)};
  }
  /// The offset of a stamp between the two, where the drift was even: it is no further from the
  /// line between two points than those are from theirs.
  [[nodiscard]] Duration error() const { return std::max(start.error, end.error); }
};

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
