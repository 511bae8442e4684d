#include "planner/tune/surrogate.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/statistics/portable_math.hpp"
#include "planner/tune/nelder_mead.hpp"

namespace longhaul::planner {
namespace {

/// Of probes that are all equal; its logarithm, and that of a hundredth, are within what fit tries.
constexpr double kLeastVariance = 1e-9;
constexpr double kJitter = 1e-10;

/// Solves L x = b for the lower factor of n rows.
std::vector<double> solved_below(const std::vector<double>& lower, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) b[i] -= lower[i * n + j] * b[j];
    b[i] /= lower[i * n + i];
  }
  return b;
}

/// Solves L^T x = b.
std::vector<double> solved_above(const std::vector<double>& lower, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) b[i] -= lower[j * n + i] * b[j];
    b[i] /= lower[i * n + i];
  }
  return b;
}

double bounded_exponential(double x) { return exponential(std::clamp(x, -600.0, 600.0)); }

/// Standard normal density, and distribution by its complementary error function.
double density_of(double z) { return 0.3989422804014327 * bounded_exponential(-z * z / 2); }
double distribution_of(double z) { return 0.5 * std::erfc(-z * 0.7071067811865476); }

}  // namespace

Surrogate::Surrogate(std::vector<Probe> probes) : probes_{std::move(probes)} {
  LONGHAUL_ASSERT(!probes_.empty(), "no probe");
  const auto [least, largest] = std::ranges::minmax(probes_, {}, &Probe::batch);
  least_batch_ = least.batch;
  largest_batch_ = largest.batch;
  for (const Probe& probe : probes_) mean_ += probe.g / static_cast<double>(probes_.size());
  fit();
  factor_ = factor(parameters_);
  LONGHAUL_ASSERT(!factor_.empty(), "variance {}, noise {}", parameters_.variance,
                  parameters_.noise);
  std::vector<double> rest;
  for (const Probe& probe : probes_) rest.push_back(probe.g - mean_);
  weights_ = solved_above(factor_, solved_below(factor_, rest));
}

double Surrogate::kernel(const Parameters& parameters, double batch, double rate,
                         const Probe& other) const {
  const double x = (batch - other.batch) / (largest_batch_ * parameters.lengths[0]);
  const double y = (rate - other.compression_rate) / parameters.lengths[1];
  const double distance = std::sqrt(5 * (x * x + y * y));
  return parameters.variance * (1 + distance + distance * distance / 3) *
         bounded_exponential(-distance);
}

std::vector<double> Surrogate::factor(const Parameters& parameters) const {
  const std::size_t n = probes_.size();
  std::vector<double> lower(n * n);
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = kernel(parameters, probes_[i].batch, probes_[i].compression_rate, probes_[j]);
      if (i == j) sum += parameters.noise + kJitter;
      for (std::size_t k = 0; k < j; ++k) sum -= lower[i * n + k] * lower[j * n + k];
      if (i == j && !(sum > 0)) return {};
      lower[i * n + j] = i == j ? std::sqrt(sum) : sum / lower[j * n + j];
    }
  return lower;
}

double Surrogate::negative_log_likelihood(const Parameters& parameters) const {
  const std::vector<double> lower = factor(parameters);
  if (lower.empty()) return std::numeric_limits<double>::infinity();
  const std::size_t n = probes_.size();
  std::vector<double> rest(n);
  for (std::size_t i = 0; i < n; ++i) rest[i] = probes_[i].g - mean_;
  double sum = 0;
  for (const double value : solved_below(lower, rest)) sum += value * value / 2;
  for (std::size_t i = 0; i < n; ++i) sum += logarithm(lower[i * n + i]);
  return sum;
}

void Surrogate::fit() {
  const auto parameters_at = [](std::span<const double> logs) {
    Parameters parameters;
    parameters.lengths = {bounded_exponential(logs[0]), bounded_exponential(logs[1])};
    parameters.variance = bounded_exponential(logs[2]);
    parameters.noise = bounded_exponential(logs[3]);
    return parameters;
  };
  const auto function = [&](std::span<const double> logs) {
    for (const double log : logs)
      if (std::fabs(log) > 30) return std::numeric_limits<double>::infinity();
    return negative_log_likelihood(parameters_at(logs));
  };
  double variance = 0;
  for (const Probe& probe : probes_)
    variance += (probe.g - mean_) * (probe.g - mean_) / static_cast<double>(probes_.size());
  variance = std::max(variance, kLeastVariance);
  parameters_ = {{1, 1}, variance, variance / 100};
  double least = std::numeric_limits<double>::infinity();
  for (const double batch : {-1.0, 0.5})
    for (const double rate : {-1.0, 0.5}) {
      const std::vector<double> start{batch, rate, logarithm(variance), logarithm(variance / 100)};
      const Minimum found =
          nelder_mead(function, start, {.step = 0.5, .tolerance = 1e-9, .most_evaluations = 600});
      if (!(found.value < least)) continue;
      least = found.value;
      parameters_ = parameters_at(found.at);
    }
}

double Surrogate::g(double batch, double rate) const {
  double sum = mean_;
  for (std::size_t i = 0; i < probes_.size(); ++i)
    sum += weights_[i] * kernel(parameters_, batch, rate, probes_[i]);
  return sum;
}

SurrogateEstimate Surrogate::estimate(double batch, double rate) const {
  std::vector<double> with;
  for (const Probe& probe : probes_) with.push_back(kernel(parameters_, batch, rate, probe));
  double variance = parameters_.variance;
  for (const double value : solved_below(factor_, with)) variance -= value * value;
  return {g(batch, rate), std::sqrt(std::max(variance, 0.0))};
}

double Surrogate::leave_one_out_rms() const {
  const std::size_t n = probes_.size();
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> unit(n);
    unit[i] = 1;
    const double own = solved_above(factor_, solved_below(factor_, unit))[i];
    const double error = weights_[i] / own;  // Rasmussen and Williams, equation 5.12
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(n));
}

std::array<double, 2> Surrogate::length_scales() const {
  return {parameters_.lengths[0] * largest_batch_, parameters_.lengths[1]};
}

SurrogateSpread Surrogate::spread() const {
  return {parameters_.variance, parameters_.noise + kJitter};
}

double expected_improvement(const SurrogateEstimate& estimate, double best) {
  const double gain = best - estimate.mean;
  if (!(estimate.deviation > 0)) return std::max(gain, 0.0);
  const double z = gain / estimate.deviation;
  return gain * distribution_of(z) + estimate.deviation * density_of(z);
}

}  // namespace longhaul::planner
