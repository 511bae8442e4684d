#pragma once

#include <optional>
#include <vector>

#include "planner/sites/sites.hpp"

namespace longhaul::planner {

/// Cost and yield of a layout (docs/sites.md has the formulas). Money in $; only where each
/// datacenter of the placement has a price. An egress price that is not given is 0.
struct SiteFigures {
  int gpus_used = 0;
  double iterations_per_second = 0;  ///< of one pipeline each: D C / time, the paper's throughput
  double samples_per_second = 0;
  std::optional<double> tokens_per_second;  ///< where the model is known
  double utilisation = 0;                   ///< share of the iteration in which a used GPU computes
  double gpu_hours = 0;                     ///< of one iteration
  double egress_bytes = 0;                  ///< over the WAN, of one iteration, both ways
  std::optional<double> gpu_dollars_per_hour;
  double egress_dollars = 0;      ///< of one iteration
  std::optional<double> dollars;  ///< of one iteration: GPUs and egress
  std::optional<double> dollars_per_hour;
  std::optional<double> dollars_per_sample;
  std::optional<double> dollars_per_million_tokens;

  /// The measure that compares plans: $ per sample, or GPU hours per sample where a price is
  /// missing.
  double cost = 0;
};

[[nodiscard]] SiteFigures figures_of(const GpuInventory& inventory, const SiteLayout& layout,
                                     const SiteTimes& times);

/// Samples of one iteration of one pipeline.
[[nodiscard]] double samples_of_pipeline(const GpuInventory& inventory);

/// Bytes that leave each datacenter of the placement in one iteration of one pipeline: activations
/// to the next, gradients to the one before.
[[nodiscard]] std::vector<double> egress_of_pipeline(const GpuInventory& inventory,
                                                     const StagePlacement& placement);

/// $ of bytes that leave a datacenter: bytes / 1e9 * egress_price, or 0 where it is not given.
[[nodiscard]] double egress_dollars_of(double bytes, const Datacenter& from);

/// $ of egress_of_pipeline().
[[nodiscard]] double egress_dollars_of_pipeline(const GpuInventory& inventory,
                                                const StagePlacement& placement);

}  // namespace longhaul::planner
