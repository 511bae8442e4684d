#include <cmath>

#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/cpu/numbers.hpp"

namespace longhaul::nn {

void CpuTensorOps::sgd(float learning_rate, ArrayView gradient, ArrayView master,
                       ArrayView weights) {
  const auto numbers = floats(master);
  const auto slope = floats(gradient);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] -= learning_rate * slope[i];
  if (weights.data != master.data) copy(master, weights);
}

void CpuTensorOps::adamw(const AdamW& options, ArrayView gradient, ArrayView mean, ArrayView square,
                         ArrayView master, ArrayView weights) {
  const double mean_bias = 1 - std::pow(static_cast<double>(options.beta1), options.step);
  const double square_bias = 1 - std::pow(static_cast<double>(options.beta2), options.step);
  const auto step = static_cast<float>(options.learning_rate / mean_bias);
  const auto root = static_cast<float>(1 / std::sqrt(square_bias));
  const float keep = 1 - options.learning_rate * options.weight_decay;
  const auto numbers = floats(master), slope = floats(gradient);
  const auto first = floats(mean), second = floats(square);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    first[i] = options.beta1 * first[i] + (1 - options.beta1) * slope[i];
    second[i] = options.beta2 * second[i] + (1 - options.beta2) * slope[i] * slope[i];
    const float scale = std::sqrt(second[i]) * root + options.epsilon;
    numbers[i] = keep * numbers[i] - step * first[i] / scale;
  }
  if (weights.data != master.data) copy(master, weights);
}

}  // namespace longhaul::nn
