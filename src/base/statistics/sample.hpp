#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace longhaul {

/// Both ends belong to it.
struct Interval {
  double low = 0, high = 0;
};

/// Which order statistics (from 1, smallest first) bound an interval, and how often it covers the
/// median of what the sample was drawn from.
struct RankInterval {
  std::size_t low = 0, high = 0;
  double coverage = 0;
};

/// The narrowest symmetric interval of order statistics that covers the median of any continuous
/// distribution with at least `confidence`: from the k-th smallest to the k-th largest of n, for
/// the largest k with P(X < k) <= (1 - confidence) / 2, X ~ Binomial(n, 1/2). Exact for every n;
/// ties only widen the coverage. nullopt where even the whole range covers less: n < 6 for 95%.
/// Source: sign test; Hoefler and Belli, "Scientific Benchmarking of Parallel Computing Systems"
/// (SC 2015), section 3.1.3, whose formula approximates these ranks.
[[nodiscard]] std::optional<RankInterval> median_ranks(std::size_t n, double confidence = 0.95);

/// Values beyond Tukey's inner fences: 1.5 interquartile ranges below the first or above the third
/// quartile (Tukey 1977). They are shown, and stay in every other number.
struct Outliers {
  Interval fences;
  std::vector<std::size_t> positions;  ///< in the sample, ascending
};
inline constexpr const char* kOutlierRule = "Tukey, 1.5 interquartile ranges";

/// Summary of a sample: for tables and JSON of benchmarks. Formulas: docs/metrics.md.
struct SampleSummary {
  std::size_t n = 0;
  double min = 0, median = 0, p95 = 0, max = 0;
  double mean = 0;                          ///< arithmetic: for costs, never for rates
  std::optional<Interval> median_interval;  ///< 95%; nullopt: too few values for one
  Outliers outliers;

  /// Width of the interval over the median; nullopt where either is missing or the median is 0.
  [[nodiscard]] std::optional<double> relative_width() const;
};
[[nodiscard]] SampleSummary summarize(std::span<const double> sample);
[[nodiscard]] inline SampleSummary summarize(const std::vector<double>& sample) {
  return summarize(std::span<const double>{sample});
}

/// The value below which `share` of the sorted sample lies, interpolated between its neighbours
/// (Hyndman and Fan 1996, type 7). `sorted` must not be empty.
[[nodiscard]] double quantile(std::span<const double> sorted, double share);

/// Mean of costs that add up (time, bytes, energy): their sum over their number. 0 of nothing.
[[nodiscard]] double arithmetic_mean(std::span<const double> costs);
/// Mean of rates of the same amount of work (tokens/s, bit/s): all the work over all the time.
/// Throws Error unless every rate is positive. 0 of nothing. There is no geometric mean here:
/// it is neither the cost nor the rate of anything that was run.
[[nodiscard]] double harmonic_mean(std::span<const double> rates);

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

/// Quantile of Student's t: P(|T| <= t) = `confidence`, for `freedom` >= 1 degrees of freedom and a
/// confidence in (0, 1). Source: Abramowitz and Stegun, 26.7.3 and 26.7.4, inverted by bisection.
[[nodiscard]] double student_t(std::size_t freedom, double confidence = 0.95);

/// The ratio of programs that were run several times: `a` and `b` have one value a run, its median.
/// Precondition: neither is empty, three together, all positive; throws Error otherwise. Mean
/// difference of logarithms with Student's 95% interval, the spread between runs of one side pooled
/// over both: what a start, a neighbour or a warm machine adds to a whole run is in it, where the
/// interval of one run's iterations (above) does not know of it. Assumed: runs are independent, and
/// their medians' logarithms normal with one variance.
[[nodiscard]] Ratio ratio_of_runs(std::span<const double> a, std::span<const double> b);

}  // namespace longhaul
