#include "planner/tune/throughput.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/statistics/portable_math.hpp"
#include "planner/tune/nelder_mead.hpp"

namespace longhaul::planner {
namespace {

void require_positive(const ThroughputSample& sample) {
  if (!(sample.batch > 0 && sample.samples_per_second > 0))
    fail("a batch of {} at {} samples/s is no measurement. Give positive numbers.", sample.batch,
         sample.samples_per_second);
}

}  // namespace

GpuSpeed fit_throughput(std::span<const ThroughputSample> samples, std::optional<GpuSpeed> known) {
  if (samples.empty()) fail("no throughput was measured. Give samples of at least one batch.");
  double largest = 0, fastest = 0;
  for (const ThroughputSample& sample : samples) {
    require_positive(sample);
    largest = std::max(largest, sample.batch);
    fastest = std::max(fastest, sample.samples_per_second);
  }
  const auto speed_at = [](std::span<const double> logs) {
    return GpuSpeed{exponential(std::clamp(logs[0], -50.0, 50.0)),
                    exponential(std::clamp(logs[1], -50.0, 50.0))};
  };
  const auto error = [&](std::span<const double> logs) {
    double sum = 0;
    for (const ThroughputSample& sample : samples) {
      const double off =
          speed_at(logs).samples_per_second(sample.batch) / sample.samples_per_second - 1;
      sum += off * off;
    }
    return sum;
  };
  constexpr double kEqual = 1e-10;  // 1e-5 of a throughput
  Minimum best{{}, HUGE_VAL, 0};
  const auto search_from = [&](double alpha, double beta) {
    const Minimum found =
        nelder_mead(error, {logarithm(alpha), logarithm(beta)}, {.step = 0.2, .tolerance = 1e-14});
    if (found.value < best.value - (known ? kEqual : 0)) best = found;
  };
  if (known) search_from(known->alpha, known->beta);
  for (const double share : {1.0, 0.5, 0.2, 0.05}) search_from(largest * share, fastest);
  return speed_at(best.at);
}

double adapted_bandwidth(double bandwidth, double idle_share) {
  if (idle_share < 0.05) return bandwidth * 1.1;
  return bandwidth * std::max(0.75, 1 - idle_share);
}

}  // namespace longhaul::planner
