#pragma once

#include <cstdint>
#include <vector>

#include "base/random.hpp"

namespace longhaul::compress::test {

/// Numbers with a few large ones among them, as gradients have.
inline std::vector<float> gradient_of(std::size_t count, std::uint64_t seed) {
  Random random{seed};
  std::vector<float> numbers(count);
  for (float& number : numbers) {
    const std::uint64_t drawn = random.next();
    const auto half = static_cast<float>(drawn & 0xff'ffffU) - static_cast<float>(drawn >> 40U);
    const float x = half / 4'000'000.0F;
    number = x * x * x;
  }
  return numbers;
}

/// Whole numbers, so that sums are exact in any order.
inline std::vector<float> whole_numbers(std::size_t count, std::uint64_t seed, int most = 1000) {
  Random random{seed};
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random.between(-most, most));
  return numbers;
}

}  // namespace longhaul::compress::test
