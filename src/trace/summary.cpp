#include <algorithm>
#include <cmath>

#include "trace/report.hpp"

namespace longhaul {
namespace {

/// The 95% confidence interval of the median runs from the k-th smallest to the k-th largest value
/// for the largest k such that P(X < k) <= 2.5%, X ~ Binomial(n, 1/2). 0: there is none.
std::size_t rank_of_limit(std::size_t n) {
  constexpr double kTail = 0.025;
  constexpr std::size_t kExact = 1000;  // 2^-n is a normal double up to 1022
  if (n > kExact) {
    const auto size = static_cast<double>(n);
    return static_cast<std::size_t>((size - 1.959964 * std::sqrt(size)) / 2);
  }
  double probability = std::ldexp(1.0, -static_cast<int>(n));  // P(X = k)
  double up_to = probability;                                  // P(X <= k)
  std::size_t k = 0;
  while (up_to <= kTail) {
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    up_to += probability;
    ++k;
  }
  return k;
}

}  // namespace

SampleSummary summarize(std::vector<double> sample) {
  SampleSummary summary;
  const std::size_t n = sample.size();
  summary.n = n;
  if (n == 0) return summary;
  std::ranges::sort(sample);
  summary.min = sample.front();
  summary.median = (sample[(n - 1) / 2] + sample[n / 2]) / 2;
  summary.p95 = sample[(n * 95 + 99) / 100 - 1];  // nearest rank
  // With fewer than 6 values no interval reaches 95%: the whole range is given.
  const std::size_t outside = std::max<std::size_t>(rank_of_limit(n), 1) - 1;
  summary.median_low = sample[outside];
  summary.median_high = sample[n - 1 - outside];
  return summary;
}

}  // namespace longhaul
