#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/number_types.cuh"

namespace longhaul::nn {
namespace {

__device__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

/// A block takes a tile of a token's columns.
template <int kVector>
__global__ void __launch_bounds__(kThreads)
    swiglu_numbers(const Bf16* gate_up, std::size_t width, Bf16* y) {
  const std::size_t column =
      (static_cast<std::size_t>(blockIdx.y) * kThreads + threadIdx.x) * kVector;
  if (column >= width) return;
  const std::size_t token = blockIdx.x;
  const Bf16* const from = gate_up + 2 * token * width + column;
  const Numbers<kVector> gate = read<kVector>(from);
  Numbers<kVector> result = read<kVector>(from + width);
#pragma unroll
  for (int k = 0; k < kVector; ++k) result.at[k] *= gate.at[k] * sigmoid(gate.at[k]);
  write(y + token * width + column, result);
}

template <int kVector>
__global__ void __launch_bounds__(kThreads)
    swiglu_gradient_numbers(const Bf16* gate_up, const Bf16* dy, std::size_t width,
                            Bf16* dgate_up) {
  const std::size_t column =
      (static_cast<std::size_t>(blockIdx.y) * kThreads + threadIdx.x) * kVector;
  if (column >= width) return;
  const std::size_t token = blockIdx.x;
  const std::size_t at = 2 * token * width + column;
  Numbers<kVector> gate = read<kVector>(gate_up + at);
  Numbers<kVector> up = read<kVector>(gate_up + at + width);
  const Numbers<kVector> gradient = read<kVector>(dy + token * width + column);
#pragma unroll
  for (int k = 0; k < kVector; ++k) {
    const float s = sigmoid(gate.at[k]);
    const float silu = gate.at[k] * s;
    const float slope = s * (1 + gate.at[k] * (1 - s));
    gate.at[k] = gradient.at[k] * up.at[k] * slope;
    up.at[k] = gradient.at[k] * silu;
  }
  write(dgate_up + at, gate);
  write(dgate_up + at + width, up);
}

struct Tiles {
  std::size_t width;
  unsigned tokens;
  [[nodiscard]] dim3 blocks(int vector) const {
    return {tokens, cuda::blocks_for(width, static_cast<std::size_t>(kThreads * vector))};
  }
};

Tiles tiles_of(ArrayView y, int width) {
  const auto columns = static_cast<std::size_t>(width);
  return {columns, static_cast<unsigned>(y.count / columns)};
}

}  // namespace

void swiglu(cudaStream_t stream, ArrayView gate_up, int width, ArrayView y) {
  const Tiles tiles = tiles_of(y, width);
  with_vector(width % 8 == 0 && aligned(gate_up, y), [&](auto vector) {
    cuda::launch(swiglu_numbers<vector.value>, {tiles.blocks(vector.value), kThreads, 0, stream},
                 numbers<Bf16>(gate_up), tiles.width, numbers<Bf16>(y));
  });
}

void swiglu_gradient(cudaStream_t stream, ArrayView gate_up, ArrayView dy, int width,
                     ArrayView dgate_up) {
  const Tiles tiles = tiles_of(dy, width);
  with_vector(width % 8 == 0 && aligned(gate_up, dy, dgate_up), [&](auto vector) {
    cuda::launch(swiglu_gradient_numbers<vector.value>,
                 {tiles.blocks(vector.value), kThreads, 0, stream}, numbers<Bf16>(gate_up),
                 numbers<Bf16>(dy), tiles.width, numbers<Bf16>(dgate_up));
  });
}

}  // namespace longhaul::nn
