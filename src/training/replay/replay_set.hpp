#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scenario/training.hpp"

namespace longhaul::training {

/// What is sent of a part, spread over all its numbers: those that are not in the set are 0. Slow
/// and plain on purpose; compress::SparseSet is what ranks exchange.
struct ReplaySet {
  std::vector<float> numbers;     ///< of the part
  std::vector<std::uint8_t> has;  ///< of each number: 1 where the set has it

  explicit ReplaySet(std::size_t count = 0) : numbers(count), has(count) {}
  /// The numbers that the set has, in their order.
  [[nodiscard]] std::vector<float> kept() const;
  friend bool operator==(const ReplaySet&, const ReplaySet&) = default;
};

/// Sum of sets in their order: a number is that of the first set that has it and then each later
/// one added, in fp32. Of one set: that set. There is at least one.
[[nodiscard]] ReplaySet sum_of_sets(std::span<const ReplaySet> sets);

/// The nearest number of `digits` significant bits that is a multiple of 2^least and not beyond
/// `largest`; ties to even. `value` is finite.
struct ShortFloat {
  int digits, least;
  double largest;
};
inline constexpr ShortFloat kHalf{11, -24, 65504};
inline constexpr ShortFloat kBrain{8, -133, 0x1.FEp127};
[[nodiscard]] float rounded_to(const ShortFloat& format, float value);

/// int8, 128 numbers after each other at a time: whole multiples from -127 to 127, ties to even, of
/// a scale, the least number of 16 significant bits that 127 times is not below the largest
/// magnitude (or the number before, where that is infinite). Below 1e-30 nothing is left.
void round_to_steps(std::span<float> values);

/// As `values` says; f32 leaves them. Numbers are finite.
void round_kept(std::span<float> values, SetValues format);

}  // namespace longhaul::training
