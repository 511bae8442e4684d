#include <cfloat>

#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/number_types.cuh"

namespace longhaul::nn {
namespace {

/// Rows are long (a vocabulary): few large blocks, so that a row is still in the cache when it is
/// read again.
constexpr int kRowThreads = 1024;
constexpr float kLog2E = 1.44269504088896341F;

/// Largest number and sum of exponentials of what a thread has seen, in one pass. (Milakov and
/// Gimelshein 2018.)
struct Online {
  float largest = -FLT_MAX;
  float sum = 0;

  template <int kVector>
  __device__ void take(const Numbers<kVector>& numbers) {
    float most = largest;
#pragma unroll
    for (int k = 0; k < kVector; ++k) most = fmaxf(most, numbers.at[k]);
    sum *= exp2f((largest - most) * kLog2E);
    largest = most;
#pragma unroll
    for (int k = 0; k < kVector; ++k) sum += exp2f((numbers.at[k] - most) * kLog2E);
  }
};

/// A row's loss, and its logits turned into scale * gradient: two reads, one write.
template <int kVector>
__global__ void __launch_bounds__(kRowThreads)
    entropy_rows(const std::int32_t* targets, int vocabulary, float scale, Bf16* logits,
                 float* losses) {
  LONGHAUL_SHARED float scratch[kRowThreads / kWarp];
  Bf16* const row =
      logits + static_cast<std::size_t>(blockIdx.x) * static_cast<std::size_t>(vocabulary);
  const std::int32_t target = targets[blockIdx.x];
  constexpr int kStep = kRowThreads * kVector;
  if (target < 0) {  // not counted
    for (int i = this_thread() * kVector; i < vocabulary; i += kStep)
      write(row + i, Numbers<kVector>{});
    if (threadIdx.x == 0) losses[blockIdx.x] = 0;
    return;
  }
  Online seen;
#pragma unroll 4
  for (int i = this_thread() * kVector; i < vocabulary; i += kStep)
    seen.take(read<kVector>(static_cast<const Bf16*>(row + i)));
  const float largest = reduce_block(seen.largest, scratch, Largest{});
  const float part = seen.sum * exp2f((seen.largest - largest) * kLog2E);
  const float sum = reduce_block(part, scratch, Sum{});
  // After reduce_block: no thread has written a logit yet.
  if (threadIdx.x == 0) losses[blockIdx.x] = logf(sum) + largest - __bfloat162float(row[target]);
  __syncthreads();
  const float factor = scale / sum;
#pragma unroll 2
  for (int i = this_thread() * kVector; i < vocabulary; i += kStep) {
    Numbers<kVector> numbers = read<kVector>(static_cast<const Bf16*>(row + i));
#pragma unroll
    for (int k = 0; k < kVector; ++k)
      numbers.at[k] =
          factor * exp2f((numbers.at[k] - largest) * kLog2E) - (i + k == target ? scale : 0.0F);
    write(row + i, numbers);
  }
}

/// One block, each thread its numbers in order, so that every run gives the same bits.
__global__ void __launch_bounds__(kRowThreads)
    add_losses(const float* losses, int count, float scale, float* loss) {
  LONGHAUL_SHARED float scratch[kRowThreads / kWarp];
  float sum = 0;
  for (int i = this_thread(); i < count; i += kRowThreads) sum += losses[i];
  sum = reduce_block(sum, scratch, Sum{});
  if (threadIdx.x == 0) *loss += scale * sum;
}

}  // namespace

void cross_entropy(cudaStream_t stream, ArrayView targets, int vocabulary, float scale,
                   ArrayView logits, ArrayView losses, ArrayView loss) {
  const auto rows = static_cast<unsigned>(targets.count);
  with_vector(vocabulary % 8 == 0 && aligned(logits), [&](auto vector) {
    cuda::launch(entropy_rows<vector.value>, {rows, kRowThreads, 0, stream},
                 numbers<std::int32_t>(targets), vocabulary, scale, numbers<Bf16>(logits),
                 numbers<float>(losses));
  });
  cuda::launch(add_losses, {1, kRowThreads, 0, stream}, numbers<float>(losses),
               static_cast<int>(rows), scale, numbers<float>(loss));
}

}  // namespace longhaul::nn
