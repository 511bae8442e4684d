#include <algorithm>
#include <chrono>
#include <cmath>

#include "harness/layers/layer_parts.hpp"

namespace longhaul::harness {

double time_once(nn::TensorOps& math, const std::function<void()>& work) {
  math.finish();
  const auto begin = std::chrono::steady_clock::now();
  work();
  math.finish();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<double> time_calls(nn::TensorOps& math, const TimingOptions& options,
                               const std::function<void(int)>& call) {
  int number = 0;
  const auto batch = [&](int calls) {
    return time_once(math, [&] {
      for (int i = 0; i < calls; ++i) call(number++);
    });
  };
  constexpr int kWarmUp = 3;
  constexpr double kMostCalls = 10'000;
  batch(kWarmUp);
  const double one = std::max(batch(kWarmUp) / kWarmUp, 1e-7);
  const auto calls =
      static_cast<int>(std::clamp(std::ceil(options.batch_seconds / one), 1.0, kMostCalls));
  std::vector<double> seconds;
  for (int sample = 0; sample < options.samples; ++sample) seconds.push_back(batch(calls) / calls);
  return seconds;
}

}  // namespace longhaul::harness
