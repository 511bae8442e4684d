#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/error.hpp"
#include "base/statistics/sample.hpp"

namespace longhaul {
namespace {

/// P(U = u) for u = 0 .. n m / 2, by whose value is the largest of all: one of the m, which then is
/// above all n, or one of the n (Mann and Whitney 1947, with sizes growing one by one).
std::vector<double> lower_half_of_u(std::size_t n, std::size_t m) {
  const std::size_t size = n * m / 2 + 1;
  // Counts for sizes (i, j): index i, for the j reached.
  std::vector<std::vector<double>> probability(n + 1, std::vector<double>(size, 0.0));
  for (auto& of_size : probability) of_size[0] = 1;  // j = 0: U is 0
  for (std::size_t j = 1; j <= m; ++j) {
    for (std::size_t i = 1; i <= n; ++i) {
      const double ours = static_cast<double>(i) / static_cast<double>(i + j);
      const std::vector<double>& without_i = probability[i - 1];
      std::vector<double>& here = probability[i];
      // The largest is one of the i: it is above all j. Otherwise j - 1 are left, U as before.
      for (std::size_t u = 0; u < size; ++u)
        here[u] = (1 - ours) * here[u] + (u >= j ? ours * without_i[u - j] : 0.0);
    }
  }
  return probability[n];
}

std::size_t normal_limit(double n, double m, double confidence) {
  // Quantile of the standard normal, by bisection of its complementary error function.
  double low = 0, high = 10;
  for (int i = 0; i < 100; ++i) {
    const double z = (low + high) / 2;
    (std::erfc(z / std::sqrt(2.0)) > 1 - confidence ? low : high) = z;
  }
  const double limit = n * m / 2 - high * std::sqrt(n * m * (n + m + 1) / 12) + 0.5;
  return limit < 1 ? 0 : static_cast<std::size_t>(limit);
}

/// How many pairs have b / a <= x; both sorted.
std::size_t pairs_up_to(std::span<const double> a, std::span<const double> b, double x) {
  std::size_t count = 0;
  std::size_t j = 0;
  for (const double each : a) {
    while (j < b.size() && b[j] / each <= x) ++j;
    count += j;
  }
  return count;
}

/// The k-th smallest (from 1) of all pairs b / a, without writing them down: positive doubles are
/// ordered as their bits, so that bisection ends at the value itself.
double kth_ratio(std::span<const double> a, std::span<const double> b, std::size_t k) {
  auto low = std::bit_cast<std::uint64_t>(b.front() / a.back());
  auto high = std::bit_cast<std::uint64_t>(b.back() / a.front());
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (pairs_up_to(a, b, std::bit_cast<double>(middle)) >= k)
      high = middle;
    else
      low = middle + 1;
  }
  return std::bit_cast<double>(low);
}

std::vector<double> sorted_positive(std::span<const double> sample) {
  std::vector<double> sorted{sample.begin(), sample.end()};
  std::ranges::sort(sorted);
  if (sorted.empty() || !(sorted.front() > 0) || !std::isfinite(sorted.back()))
    fail("a sample to compare has {} (its ratio to another is not defined). Give positive values.",
         sorted.empty() ? "no values" : "a value that is not positive");
  return sorted;
}

}  // namespace

std::optional<std::size_t> rank_sum_limit(std::size_t n, std::size_t m, double confidence) {
  constexpr std::size_t kExact = 20'000;
  if (n == 0 || m == 0) return std::nullopt;
  std::size_t k = 0;
  if (n * m <= kExact) {
    const double tail = (1 - confidence) / 2;
    double below = 0;
    for (const double probability : lower_half_of_u(std::min(n, m), std::max(n, m))) {
      below += probability;
      if (below > tail) break;
      ++k;
    }
  } else {
    k = normal_limit(static_cast<double>(n), static_cast<double>(m), confidence);
  }
  return k == 0 ? std::nullopt : std::optional{k};
}

Ratio ratio_of(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> first = sorted_positive(a);
  const std::vector<double> second = sorted_positive(b);
  const std::size_t pairs = first.size() * second.size();
  Ratio ratio;
  ratio.estimate =
      (kth_ratio(first, second, (pairs + 1) / 2) + kth_ratio(first, second, pairs / 2 + 1)) / 2;
  if (const auto k = rank_sum_limit(first.size(), second.size()))
    ratio.interval =
        Interval{kth_ratio(first, second, *k), kth_ratio(first, second, pairs + 1 - *k)};
  return ratio;
}

}  // namespace longhaul
