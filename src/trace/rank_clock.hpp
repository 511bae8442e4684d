#pragma once

#include <cmath>
#include <cstdint>

namespace longhaul {

/// How far a rank's clock has run away from rank 0's since the two were compared. Its stamps are
/// in rank 0's clock as of then; the drift is known only when they are compared again.
struct RankClock {
  std::int64_t since_ns = 0;  ///< when they were compared first, by the rank's stamps
  double drift = 0;           ///< ns to add for each ns since then

  /// The stamp on rank 0's clock.
  [[nodiscard]] std::int64_t moved(std::int64_t stamp_ns) const {
    return stamp_ns + std::llround(drift * static_cast<double>(stamp_ns - since_ns));
  }
};

}  // namespace longhaul
