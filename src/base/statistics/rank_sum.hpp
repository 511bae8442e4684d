#pragma once

#include <cstddef>
#include <optional>
#include <span>

#include "base/statistics/sample.hpp"

namespace longhaul {

/// The largest k with P(U < k) <= (1 - confidence) / 2 for Mann and Whitney's U of two samples of
/// one continuous distribution; nullopt where even k = 1 is too likely (for
/// 95%: fewer than 4 and 4 values, 3 and 5, or 2 and 8). Exact up to 20,000 pairs; beyond that a
/// normal U, whose tails are heavier.
[[nodiscard]] std::optional<std::size_t> rank_sum_limit(std::size_t n, std::size_t m,
                                                        double confidence = 0.95);

/// By what factor values of one sample are larger than those of another.
struct Ratio {
  double estimate = 1;               ///< median of all pairs b / a (Hodges and Lehmann 1963)
  std::optional<Interval> interval;  ///< 95%; nullopt: too few values for one
};

/// The ratio of `b` over `a`. Precondition: both are not empty and all values positive; throws
/// Error otherwise. The interval lies between the k-th
/// smallest and the k-th largest of all pairs b / a, k = rank_sum_limit: it leaves 1 out exactly
/// where Mann and Whitney's two-sided test tells the samples apart (ties: where it surely does).
/// Source: Lehmann, "Nonparametrics" (1975), chapter 2. No distribution is assumed, only that
/// values are independent and that, up to a factor, both samples vary equally.
[[nodiscard]] Ratio ratio_of(std::span<const double> a, std::span<const double> b);

}  // namespace longhaul
