#pragma once

#include <cstdint>

namespace longhaul {

/// SplitMix64 (Steele, Lea, Flood 2014): one multiply-xor chain a draw. The whole stream follows
/// from the seed on every machine, which the standard library's distributions do not promise.
class Random {
public:
  explicit constexpr Random(std::uint64_t seed) : state_{seed} {}

  constexpr std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, 1).
  constexpr double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in [low, high]; the modulo bias is below 2^-32 for spans below 2^32.
  constexpr std::int64_t between(std::int64_t low, std::int64_t high) {
    const auto span = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(next() % span);
  }
  /// Standard normal, as the sum of twelve uniforms less six (Irwin-Hall): no libm, so equal bits
  /// everywhere; bounded by 6 standard deviations.
  constexpr double normal() {
    double sum = -6.0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum;
  }

private:
  std::uint64_t state_;
};

/// A seed for the stream named by (seed, a, b): the same draw for every caller,
/// in any order of calls.
[[nodiscard]] constexpr std::uint64_t derived_seed(std::uint64_t seed, std::uint64_t a,
                                                   std::uint64_t b = 0) {
  Random mixer{seed ^ (a * 0xd6e8feb86659fd93ULL)};
  return Random{mixer.next() ^ (b * 0xa0761d6478bd642fULL)}.next();
}

}  // namespace longhaul
