#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "harness/training/whole_model.hpp"

namespace longhaul::harness {

/// What must not get lost of a run, by number of the model; in double precision.
class TrainMass {
public:
  /// Of each replica: the sum of its gradients, and what still waits with it.
  void add(std::span<const double> gradients, std::span<const double> waits);
  /// After these, of each replica: the sum of what it has stepped with. Where `steps` is 0 another
  /// of its node steps: it has no sums, which is no loss.
  void compare(std::span<const double> sums, std::span<const std::int8_t> steps);
  /// |gradients - stepped with - what waits| / |gradients|, 2-norms over the numbers, of the
  /// replica that lacks most; 1 where no gradient was, and something was stepped with.
  [[nodiscard]] double lost_relative() const;

private:
  std::vector<double> gradients_, waits_;
  double most_ = 0;  ///< squared
};

/// Collective; TrainMass::lost_relative() on rank 0. nullopt: of too many numbers, or where the
/// method forgets some by design.
[[nodiscard]] std::optional<double> lost_share(const engine::Ranks& ranks, const TrainRank& rank,
                                               const WholeModel& whole);

}  // namespace longhaul::harness
