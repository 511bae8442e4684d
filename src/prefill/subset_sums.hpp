#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/units.hpp"

namespace longhaul::prefill {

/// The sums of any of `lengths`, each as often as wanted, up to `most`. Lengths are rounded down to
/// a grain of at least `most` / 2^16 unless their common divisor is coarser, so that a sum is never
/// too small; it is exact where it is a multiple of that divisor.
class SubsetSums {
public:
  SubsetSums(std::span<const Duration> lengths, Duration most);

  /// The largest sum that is at most `room`, or an upper bound on it of at most `room`.
  [[nodiscard]] Duration largest(Duration room) const;

private:
  Duration grain_{1};
  Duration error_{};                 ///< a sum of m lengths is at most m grains too small
  bool is_dense_ = false;            ///< a length is below the grain: any sum counts
  std::vector<std::int64_t> items_;  ///< index: grains; the most lengths in that sum, -1: none
};

/// A choice of lengths that fill a gap.
struct Fill {
  Duration sum{};
  std::vector<std::size_t> chosen{};  ///< positions, ascending
};
/// The fullest choice of `lengths`, each at most once, that is at most `room`: sums are told apart
/// to room / 4096. Of equally full ones that of the lengths that stand first.
[[nodiscard]] Fill fullest(std::span<const Duration> lengths, Duration room);

}  // namespace longhaul::prefill
