#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define LONGHAUL_ON_BOTH __host__ __device__
#else
#define LONGHAUL_ON_BOTH
#endif

namespace longhaul::nn {

/// Number `at` of the series `seed`, uniform in (-1, 1): 24 bits of a mixed counter (SplitMix64),
/// so that any device can make any part of a series, and all make the same.
LONGHAUL_ON_BOTH constexpr float counter_random(std::uint64_t seed, std::uint64_t at) {
  std::uint64_t word = seed + (at + 1) * 0x9e3779b97f4a7c15ULL;
  word = (word ^ (word >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  word = (word ^ (word >> 27U)) * 0x94d049bb133111ebULL;
  word ^= word >> 31U;
  const auto bits = static_cast<std::int32_t>(word >> 40U);  // 24 bits
  return (static_cast<float>(bits) + 0.5F) * 0x1p-23F - 1.0F;
}

}  // namespace longhaul::nn
