#include "base/statistics/sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.hpp"

namespace longhaul {
namespace {

/// P(X = k) of Binomial(n, 1/2) for k below n / 2, as shares of all 2^n outcomes: from the middle
/// outwards, which neither overflows nor loses the tail for any n. Those below 1e-18 of the middle
/// are left out; `first` is the k of the front.
struct LowerHalf {
  std::size_t first = 0;
  std::vector<double> probability;
};

LowerHalf lower_half(std::size_t n) {
  constexpr double kNothing = 1e-18;
  const std::size_t middle = (n - 1) / 2;
  // With even n the middle of all outcomes is one above: its weight is 1, as the largest.
  double weight =
      n % 2 == 0 ? static_cast<double>(middle + 1) / static_cast<double>(n - middle) : 1.0;
  double total = n % 2 == 0 ? 1.0 : 0.0;
  LowerHalf half;
  std::size_t k = middle;
  for (;; --k) {
    half.probability.push_back(weight);
    total += 2 * weight;
    if (k == 0 || weight < kNothing) break;
    weight *= static_cast<double>(k) / static_cast<double>(n - k + 1);
  }
  half.first = k;
  std::ranges::reverse(half.probability);
  for (double& p : half.probability) p /= total;
  return half;
}

Outliers outliers_of(std::span<const double> sample, std::span<const double> sorted) {
  constexpr double kReach = 1.5;
  const double first = quantile(sorted, 0.25);
  const double third = quantile(sorted, 0.75);
  Outliers outliers;
  outliers.fences = {first - kReach * (third - first), third + kReach * (third - first)};
  for (std::size_t i = 0; i < sample.size(); ++i)
    if (sample[i] < outliers.fences.low || sample[i] > outliers.fences.high)
      outliers.positions.push_back(i);
  return outliers;
}

}  // namespace

std::optional<RankInterval> median_ranks(std::size_t n, double confidence) {
  if (n == 0) return std::nullopt;
  const double tail = (1 - confidence) / 2;
  const LowerHalf half = lower_half(n);
  std::size_t k = half.first;  // P(X < k) is `below`
  double below = 0;
  for (const double probability : half.probability) {
    if (below + probability > tail) break;
    below += probability;
    ++k;
  }
  if (k == 0) return std::nullopt;
  return RankInterval{k, n + 1 - k, 1 - 2 * below};
}

double quantile(std::span<const double> sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

std::optional<double> SampleSummary::relative_width() const {
  if (!median_interval || median == 0) return std::nullopt;
  return (median_interval->high - median_interval->low) / std::abs(median);
}

SampleSummary summarize(std::span<const double> sample) {
  SampleSummary summary;
  const std::size_t n = sample.size();
  summary.n = n;
  if (n == 0) return summary;
  std::vector<double> sorted{sample.begin(), sample.end()};
  std::ranges::sort(sorted);
  summary.min = sorted.front();
  summary.max = sorted.back();
  summary.median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
  summary.p95 = sorted[(n * 95 + 99) / 100 - 1];  // nearest rank
  summary.mean = arithmetic_mean(sample);
  if (const auto ranks = median_ranks(n))
    summary.median_interval = Interval{sorted[ranks->low - 1], sorted[ranks->high - 1]};
  summary.outliers = outliers_of(sample, sorted);
  return summary;
}

double arithmetic_mean(std::span<const double> costs) {
  if (costs.empty()) return 0;
  return std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
}

double harmonic_mean(std::span<const double> rates) {
  if (rates.empty()) return 0;
  double time = 0;  // of a unit of work at each rate
  for (const double rate : rates) {
    if (!(rate > 0))
      fail("a rate of {} has no harmonic mean (its work never ends). Give positive rates.", rate);
    time += 1 / rate;
  }
  return static_cast<double>(rates.size()) / time;
}

}  // namespace longhaul
