#pragma once

#include <optional>
#include <span>

namespace longhaul::planner {

/// A GPU that is saturated from `alpha` samples on (StellaTrain, equation 2 and table 2).
struct GpuSpeed {
  double alpha = 1;  ///< samples
  double beta = 1;   ///< samples a second
  /// Forward and backward of a batch: max(x, alpha) / beta.
  [[nodiscard]] double seconds(double batch) const {
    return (batch > alpha ? batch : alpha) / beta;
  }
  [[nodiscard]] double samples_per_second(double batch) const { return batch / seconds(batch); }
  friend bool operator==(const GpuSpeed&, const GpuSpeed&) = default;
};

/// What telemetry says of a batch.
struct ThroughputSample {
  double batch = 0, samples_per_second = 0;
};

/// The law that fits best, by the sum of squared relative errors (section 4.1, step 2). Few batches
/// leave alpha open: of laws that fit equally well it is the one that is found from `known`, where
/// that is given. Throws Error where there is no sample or one is not positive.
[[nodiscard]] GpuSpeed fit_throughput(std::span<const ThroughputSample> samples,
                                      std::optional<GpuSpeed> known = {});

/// Section 4.1, step 3, as the public code has it: idle under 5%, x 1.1; otherwise
/// x max(0.75, 1 - idle).
[[nodiscard]] double adapted_bandwidth(double bandwidth, double idle_share);

}  // namespace longhaul::planner
