#include <algorithm>

#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/number_types.cuh"

namespace longhaul::nn {
namespace {

constexpr int kWarps = kThreads / static_cast<int>(kWarp);
/// Stretches of rows that are summed side by side; enough blocks for a large device with the tiles
/// of columns.
constexpr std::size_t kMostStretches = 64;
constexpr std::size_t kLeastRows = 32;

std::size_t stretches(std::size_t rows) {
  return std::clamp<std::size_t>(rows / kLeastRows, 1, kMostStretches);
}

/// Sums of dy x / rms(x) over a stretch of rows: a tile of columns a block, every eighth row a
/// warp. partial: [stretches, width].
template <int kVector>
__global__ void __launch_bounds__(kThreads)
    sum_columns(const Bf16* x, const float* inverse_rms, const Bf16* dy, int rows, int width,
                float* partial) {
  constexpr int kColumns = static_cast<int>(kWarp) * kVector;
  LONGHAUL_SHARED float sums[kWarps][kColumns];
  const int warp = this_thread() / static_cast<int>(kWarp);
  const int lane = this_thread() % static_cast<int>(kWarp);
  const int column = static_cast<int>(blockIdx.x) * kColumns + lane * kVector;
  const int each = (rows + static_cast<int>(gridDim.y) - 1) / static_cast<int>(gridDim.y);
  const int first = static_cast<int>(blockIdx.y) * each;
  const int last = min(first + each, rows);
  Numbers<kVector> sum{};
  if (column < width) {
#pragma unroll 4
    for (int row = first + warp; row < last; row += kWarps) {
      const std::size_t at = static_cast<std::size_t>(row) * static_cast<std::size_t>(width) +
                             static_cast<std::size_t>(column);
      const Numbers<kVector> inputs = read<kVector>(x + at), gradients = read<kVector>(dy + at);
      const float inverse = inverse_rms[row];
#pragma unroll
      for (int k = 0; k < kVector; ++k) sum.at[k] += inputs.at[k] * gradients.at[k] * inverse;
    }
  }
#pragma unroll
  for (int k = 0; k < kVector; ++k) sums[warp][k * static_cast<int>(kWarp) + lane] = sum.at[k];
  __syncthreads();
  for (int i = this_thread(); i < kColumns; i += kThreads) {
    float total = 0;
    for (int of_warp = 0; of_warp < kWarps; ++of_warp) total += sums[of_warp][i];
    const int to = static_cast<int>(blockIdx.x) * kColumns + i % static_cast<int>(kWarp) * kVector +
                   i / static_cast<int>(kWarp);
    if (to < width)
      partial[static_cast<std::size_t>(blockIdx.y) * static_cast<std::size_t>(width) +
              static_cast<std::size_t>(to)] = total;
  }
}

constexpr int kAddedColumns = 32;  ///< of a block of add_stretches

/// A warp adds every eighth stretch, and one of the block what the warps have: in one order, so
/// that every run gives the same bits.
__global__ void __launch_bounds__(kThreads)
    add_stretches(const float* partial, int count, int width, float* dweight) {
  cuda::wait_for_kernel_before();
  LONGHAUL_SHARED float sums[kWarps][kAddedColumns];
  const int warp = this_thread() / kAddedColumns;
  const int lane = this_thread() % kAddedColumns;
  const int column = static_cast<int>(blockIdx.x) * kAddedColumns + lane;
  float sum = 0;
  if (column < width) {
#pragma unroll 8
    for (int stretch = warp; stretch < count; stretch += kWarps)
      sum += partial[static_cast<std::size_t>(stretch) * static_cast<std::size_t>(width) +
                     static_cast<std::size_t>(column)];
  }
  sums[warp][lane] = sum;
  __syncthreads();
  if (warp > 0 || column >= width) return;
  float total = 0;
#pragma unroll
  for (int of_warp = 0; of_warp < kWarps; ++of_warp) total += sums[of_warp][lane];
  dweight[column] += total;
}

}  // namespace

std::size_t weight_gradient_scratch(std::size_t rows, int width) {
  return stretches(rows) * static_cast<std::size_t>(width);
}

void rms_norm_weight_gradient(cudaStream_t stream, ArrayView x, ArrayView inverse_rms, ArrayView dy,
                              int width, ArrayView scratch, ArrayView dweight) {
  const std::size_t rows = x.count / static_cast<std::size_t>(width);
  if (rows == 0) return;
  const auto count = static_cast<unsigned>(stretches(rows));
  with_vector(width % 8 == 0 && aligned(x, dy), [&](auto vector) {
    const dim3 blocks{cuda::blocks_for(static_cast<std::size_t>(width), kWarp * vector.value),
                      count};
    cuda::launch(sum_columns<vector.value>, {blocks, kThreads, 0, stream}, numbers<Bf16>(x),
                 numbers<float>(inverse_rms), numbers<Bf16>(dy), static_cast<int>(rows), width,
                 numbers<float>(scratch));
  });
  cuda::launch_prepared(
      add_stretches,
      {cuda::blocks_for(static_cast<std::size_t>(width), kAddedColumns), kThreads, 0, stream},
      numbers<float>(scratch), static_cast<int>(count), width, numbers<float>(dweight));
}

}  // namespace longhaul::nn
