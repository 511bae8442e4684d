#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.hpp"
#include "base/statistics/sample.hpp"

namespace longhaul {
namespace {

/// P(|T| <= t).
double within(double t, std::size_t freedom) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(freedom)));
  const double squared = std::cos(angle) * std::cos(angle);
  const bool is_odd = freedom % 2 == 1;
  double sum = 0;
  double term = is_odd ? std::cos(angle) : 1;
  for (std::size_t i = is_odd ? 3 : 2; i <= freedom; i += 2) {
    sum += term;
    term *= squared * static_cast<double>(i - 1) / static_cast<double>(i);
  }
  if (!is_odd) return std::sin(angle) * sum;
  return 2 / std::numbers::pi * (angle + std::sin(angle) * sum);
}

struct LogSample {
  double mean = 0;
  double squares = 0;  ///< of deviations from it, summed
};

LogSample logs_of(std::span<const double> values) {
  std::vector<double> logs;
  for (const double value : values) {
    if (!(value > 0) || !std::isfinite(value))
      fail(
          "a run to compare has a time of {} (its ratio to another is not defined). Give positive "
          "values.",
          value);
    logs.push_back(std::log(value));
  }
  if (logs.empty()) fail("a side to compare has no runs. Name one at least.");
  LogSample sample;
  sample.mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(logs.size());
  for (const double log : logs) sample.squares += (log - sample.mean) * (log - sample.mean);
  return sample;
}

}  // namespace

double student_t(std::size_t freedom, double confidence) {
  double low = 0, high = 1;
  while (within(high, freedom) < confidence) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (within(middle, freedom) < confidence ? low : high) = middle;
  }
  return high;
}

Ratio ratio_of_runs(std::span<const double> a, std::span<const double> b) {
  const LogSample first = logs_of(a);
  const LogSample second = logs_of(b);
  if (a.size() + b.size() < 3)
    fail("one run a side has no spread between runs. Compare iterations, or give more runs.");
  const std::size_t freedom = a.size() + b.size() - 2;
  const double variance = (first.squares + second.squares) / static_cast<double>(freedom);
  const double error =
      std::sqrt(variance * (1 / static_cast<double>(a.size()) + 1 / static_cast<double>(b.size())));
  const double reach = student_t(freedom) * error;
  const double difference = second.mean - first.mean;
  return {std::exp(difference),
          Interval{std::exp(difference - reach), std::exp(difference + reach)}};
}

}  // namespace longhaul
