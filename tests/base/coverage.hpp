#pragma once

#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::testing {

inline constexpr int kTrials = 2000;

/// P(X <= hits) of Binomial(trials, p), from logarithms of factorials.
[[nodiscard]] inline double binomial_up_to(int hits, int trials, double p) {
  double sum = 0;
  for (int k = 0; k <= hits; ++k)
    sum +=
        std::exp(std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) - std::lgamma(trials - k + 1.0) +
                 k * std::log(p) + (trials - k) * std::log1p(-p));
  return sum;
}

template <typename Covers>
int hits_of(std::uint64_t seed, const Covers& covers) {
  Random random{seed};
  int hits = 0;
  for (int i = 0; i < kTrials; ++i) hits += covers(random) ? 1 : 0;
  return hits;
}

/// Share of the seeds with which a correct procedure fails by chance; the seeds are fixed.
inline constexpr double kRare = 1e-4;

/// 2000 seeded trials are as many hits as a coverage of `least` or more would give.
template <typename Covers>
::testing::AssertionResult coverage_is_at_least(double least, std::uint64_t seed,
                                                const Covers& covers) {
  const int hits = hits_of(seed, covers);
  if (binomial_up_to(hits, kTrials, least) > kRare) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << hits << " of " << kTrials << " hits, wanted " << least;
}

/// Neither fewer nor more hits than a coverage of exactly `wanted` would give.
template <typename Covers>
::testing::AssertionResult coverage_is(double wanted, std::uint64_t seed, const Covers& covers) {
  const int hits = hits_of(seed, covers);
  const bool few = binomial_up_to(hits, kTrials, wanted) <= kRare;
  const bool many = 1 - binomial_up_to(hits - 1, kTrials, wanted) <= kRare;
  if (!few && !many) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << hits << " of " << kTrials << " hits, wanted " << wanted;
}

}  // namespace longhaul::testing
