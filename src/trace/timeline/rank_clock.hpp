#pragma once

#include <cmath>
#include <cstdint>

namespace longhaul::trace {

/// How far a rank's clock ran away from rank 0's while a run lasted. Its stamps are in rank 0's
/// clock as of `since_ns`; the drift is known only when the two are compared again.
struct RankClock {
  std::int64_t since_ns = 0;  ///< when they were compared, by the rank's stamps
  std::int64_t until_ns = 0;  ///< and when again
  double drift = 0;           ///< ns to add for each ns since then

  /// The stamp on rank 0's clock. Others than those of this run (an earlier part of one that was
  /// resumed) stay as they are.
  [[nodiscard]] std::int64_t moved(std::int64_t stamp_ns) const {
    if (stamp_ns < since_ns || until_ns < stamp_ns) return stamp_ns;
    return stamp_ns + std::llround(drift * static_cast<double>(stamp_ns - since_ns));
  }
};

}  // namespace longhaul::trace
