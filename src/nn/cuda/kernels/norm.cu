#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/row_shape.cuh"

namespace longhaul::nn {
namespace {

constexpr float kEpsilon = 1e-5F;

/// One block a row: one read of x, one write of y.
template <int kVector, int kHeld>
__global__ void __launch_bounds__(kThreads)
    norm_rows(const Bf16* x, const Bf16* weight, int width, Bf16* y, float* inverse_rms) {
  LONGHAUL_SHARED float scratch[kThreads / kWarp];
  const std::size_t start = static_cast<std::size_t>(blockIdx.x) * static_cast<std::size_t>(width);
  Row<kVector, kHeld, Bf16> row{x + start};
  row.fill(width);
  float squares = 0;
  each_pack<kVector, kHeld>(width, [&](int held, int i) {
    const Numbers<kVector> numbers = row.at(held, i);
#pragma unroll
    for (int k = 0; k < kVector; ++k) squares += numbers.at[k] * numbers.at[k];
  });
  const float mean = reduce_block(squares, scratch, Sum{}) / static_cast<float>(width);
  const float inverse = 1 / sqrtf(mean + kEpsilon);
  write_row<kVector, kHeld>(width, y + start, [&](int held, int i) {
    Numbers<kVector> numbers = row.at(held, i);
    const Numbers<kVector> weights = read<kVector>(weight + i);
#pragma unroll
    for (int k = 0; k < kVector; ++k) numbers.at[k] *= inverse * weights.at[k];
    return numbers;
  });
  if (threadIdx.x == 0) inverse_rms[blockIdx.x] = inverse;
}

struct InputGradient {
  const Bf16 *x, *weight, *dy;
  const float* inverse_rms;
  int width;
  bool accumulate;
  Bf16* dx;
};

/// dx = r w dy - x r^3 mean(w dy x), added to what is there or not: one read of x and dy each (and
/// of dx), one write of dx.
template <int kVector, int kHeld>
__global__ void __launch_bounds__(kThreads, 2) norm_input_gradient_rows(InputGradient of) {
  LONGHAUL_SHARED float scratch[kThreads / kWarp];
  const std::size_t start =
      static_cast<std::size_t>(blockIdx.x) * static_cast<std::size_t>(of.width);
  Row<kVector, kHeld, Bf16> x{of.x + start}, dy{of.dy + start}, before{of.dx + start};
  x.fill(of.width);
  dy.fill(of.width);
  if (of.accumulate) before.fill(of.width);  // on its way while the sum is taken
  float dots = 0;
  each_pack<kVector, kHeld>(of.width, [&](int held, int i) {
    const Numbers<kVector> inputs = x.at(held, i), gradients = dy.at(held, i);
    const Numbers<kVector> weights = read<kVector>(of.weight + i);
#pragma unroll
    for (int k = 0; k < kVector; ++k) dots += inputs.at[k] * gradients.at[k] * weights.at[k];
  });
  const float inverse = of.inverse_rms[blockIdx.x];
  const float mean = reduce_block(dots, scratch, Sum{}) / static_cast<float>(of.width);
  const float along = inverse * inverse * inverse * mean;
  write_row<kVector, kHeld>(of.width, of.dx + start, [&](int held, int i) {
    const Numbers<kVector> inputs = x.at(held, i), gradients = dy.at(held, i);
    const Numbers<kVector> weights = read<kVector>(of.weight + i);
    Numbers<kVector> result{};
    if (of.accumulate) result = before.at(held, i);
#pragma unroll
    for (int k = 0; k < kVector; ++k)
      result.at[k] += inverse * weights.at[k] * gradients.at[k] - along * inputs.at[k];
    return result;
  });
}

unsigned rows_of(ArrayView x, int width) {
  return static_cast<unsigned>(x.count / static_cast<std::size_t>(width));
}

}  // namespace

void rms_norm(cudaStream_t stream, ArrayView x, ArrayView weight, int width, ArrayView y,
              ArrayView inverse_rms) {
  const bool in_packs = width % 8 == 0 && aligned(x, weight, y);
  with_row_shape(width, in_packs, [&](auto vector, auto held) {
    cuda::launch(norm_rows<vector.value, held.value>, {rows_of(x, width), kThreads, 0, stream},
                 numbers<Bf16>(x), numbers<Bf16>(weight), width, numbers<Bf16>(y),
                 numbers<float>(inverse_rms));
  });
}

void rms_norm_input_gradient(cudaStream_t stream, ArrayView x, ArrayView weight,
                             ArrayView inverse_rms, ArrayView dy, int width, bool accumulate,
                             ArrayView dx) {
  const bool in_packs = width % 8 == 0 && aligned(x, weight, dy, dx);
  const InputGradient of{numbers<Bf16>(x),
                         numbers<Bf16>(weight),
                         numbers<Bf16>(dy),
                         numbers<float>(inverse_rms),
                         width,
                         accumulate,
                         numbers<Bf16>(dx)};
  with_row_shape(width, in_packs, [&](auto vector, auto held) {
    cuda::launch(norm_input_gradient_rows<vector.value, held.value>,
                 {rows_of(x, width), kThreads, 0, stream}, of);
  });
}

}  // namespace longhaul::nn
