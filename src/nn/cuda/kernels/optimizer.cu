#include <cmath>

#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/number_types.cuh"

namespace longhaul::nn {
namespace {

template <int kVector, typename T>
__global__ void __launch_bounds__(kThreads)
    sgd_numbers(float rate, const float* gradient, std::size_t count, float* master, T* weights) {
  each_vector<kVector>(count, [&](auto vector, std::size_t i) {
    Numbers<vector.value> numbers = read<vector.value>(static_cast<const float*>(master + i));
    const Numbers<vector.value> gradients = read<vector.value>(gradient + i);
#pragma unroll
    for (int k = 0; k < vector.value; ++k) numbers.at[k] -= rate * gradients.at[k];
    write(master + i, numbers);
    write(weights + i, numbers);
  });
}

struct Step {
  float rate, beta1, beta2, epsilon, decay;
  float mean_correction, square_correction;  ///< 1 / (1 - beta^step)
};

struct Moments {
  float *mean, *square, *master;
};

template <int kVector, typename T>
__global__ void __launch_bounds__(kThreads)
    adamw_numbers(Step step, const float* gradient, std::size_t count, Moments of, T* weights) {
  each_vector<kVector>(count, [&](auto vector, std::size_t i) {
    constexpr int kCount = decltype(vector)::value;
    const Numbers<kCount> gradients = read<kCount>(gradient + i);
    Numbers<kCount> mean = read<kCount>(static_cast<const float*>(of.mean + i));
    Numbers<kCount> square = read<kCount>(static_cast<const float*>(of.square + i));
    Numbers<kCount> master = read<kCount>(static_cast<const float*>(of.master + i));
#pragma unroll
    for (int k = 0; k < kCount; ++k) {
      const float g = gradients.at[k];
      mean.at[k] = step.beta1 * mean.at[k] + (1 - step.beta1) * g;
      square.at[k] = step.beta2 * square.at[k] + (1 - step.beta2) * g * g;
      const float root = sqrtf(square.at[k] * step.square_correction) + step.epsilon;
      const float update = mean.at[k] * step.mean_correction / root + step.decay * master.at[k];
      master.at[k] -= step.rate * update;
    }
    write(of.mean + i, mean);
    write(of.square + i, square);
    write(of.master + i, master);
    write(weights + i, master);
  });
}

Step step_of(const AdamW& options) {
  const auto correction = [&](float beta) {
    return static_cast<float>(1 / (1 - std::pow(static_cast<double>(beta), options.step)));
  };
  return {options.learning_rate,    options.beta1,        options.beta2,
          options.epsilon,          options.weight_decay, correction(options.beta1),
          correction(options.beta2)};
}

}  // namespace

void sgd(cudaStream_t stream, float learning_rate, ArrayView gradient, ArrayView master,
         ArrayView weights) {
  with_type(weights, [&](auto* target) {
    with_vector(aligned(gradient, master, weights), [&](auto vector) {
      using T = std::remove_pointer_t<decltype(target)>;
      cuda::launch(sgd_numbers<vector.value, T>,
                   {vector_blocks(gradient.count, vector.value), kThreads, 0, stream},
                   learning_rate, numbers<float>(gradient), gradient.count, numbers<float>(master),
                   target);
    });
  });
}

void adamw(cudaStream_t stream, const AdamW& options, ArrayView gradient, ArrayView mean,
           ArrayView square, ArrayView master, ArrayView weights) {
  const Moments of{numbers<float>(mean), numbers<float>(square), numbers<float>(master)};
  with_type(weights, [&](auto* target) {
    with_vector(aligned(gradient, mean, square, master, weights), [&](auto vector) {
      using T = std::remove_pointer_t<decltype(target)>;
      cuda::launch(adamw_numbers<vector.value, T>,
                   {vector_blocks(gradient.count, vector.value), kThreads, 0, stream},
                   step_of(options), numbers<float>(gradient), gradient.count, of, target);
    });
  });
}

}  // namespace longhaul::nn
