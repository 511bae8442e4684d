#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/number_types.cuh"

namespace longhaul::nn {
namespace {

template <int kVector>
__global__ void __launch_bounds__(kThreads)
    gather_rows(const std::int32_t* tokens, const Bf16* table, std::size_t width, Bf16* y) {
  const std::size_t column =
      (static_cast<std::size_t>(blockIdx.y) * kThreads + threadIdx.x) * kVector;
  if (column >= width) return;
  const std::size_t row = blockIdx.x;
  const auto token = static_cast<std::size_t>(tokens[row]);
  write(y + row * width + column, read<kVector>(table + token * width + column));
}

constexpr std::int32_t kNone = -1;

/// next[t]: where the token of place t stands again; first[t]: 1 where it stands nowhere before. A
/// warp looks for each place, over all of them.
__global__ void __launch_bounds__(kThreads)
    chain_tokens(const std::int32_t* tokens, int count, std::int32_t* next, std::int32_t* first) {
  const int place = static_cast<int>(thread_of_all() / kWarp);
  const int lane = this_thread() % static_cast<int>(kWarp);
  const std::int32_t own = place < count ? tokens[place] : 0;
  std::int32_t found = count;
  std::int32_t is_first = 1;
#pragma unroll 8
  for (int other = lane; other < count; other += static_cast<int>(kWarp)) {
    const bool is_same = tokens[other] == own;
    if (is_same && other < place) is_first = 0;
    if (is_same && other > place) found = min(found, other);
  }
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    found = min(found, __shfl_xor_sync(kAllLanes, found, offset));
    is_first = min(is_first, __shfl_xor_sync(kAllLanes, is_first, offset));
  }
  if (place >= count || lane != 0) return;
  next[place] = found < count ? found : kNone;
  first[place] = is_first;
}

/// The block of a token's first place adds the gradients of all its places to its row, in order:
/// no one else writes that row.
template <int kVector>
__global__ void __launch_bounds__(kThreads)
    add_chains(const std::int32_t* tokens, const std::int32_t* next, const std::int32_t* first,
               const Bf16* dy, std::size_t width, float* dtable) {
  cuda::wait_for_kernel_before();
  const std::size_t column =
      (static_cast<std::size_t>(blockIdx.y) * kThreads + threadIdx.x) * kVector;
  const auto start = static_cast<std::int32_t>(blockIdx.x);
  if (first[start] == 0 || column >= width) return;
  Numbers<kVector> sum{};
  for (std::int32_t place = start; place != kNone; place = next[place]) {
    const Numbers<kVector> more =
        read<kVector>(dy + static_cast<std::size_t>(place) * width + column);
#pragma unroll
    for (int k = 0; k < kVector; ++k) sum.at[k] += more.at[k];
  }
  float* const to = dtable + static_cast<std::size_t>(tokens[start]) * width + column;
  const Numbers<kVector> before = read<kVector>(static_cast<const float*>(to));
#pragma unroll
  for (int k = 0; k < kVector; ++k) sum.at[k] += before.at[k];
  write(to, sum);
}

dim3 row_tiles(ArrayView tokens, std::size_t width, int vector) {
  return {static_cast<unsigned>(tokens.count),
          cuda::blocks_for(width, static_cast<std::size_t>(kThreads * vector))};
}

}  // namespace

void embed(cudaStream_t stream, ArrayView tokens, ArrayView table, int width, ArrayView y) {
  const auto columns = static_cast<std::size_t>(width);
  with_vector(width % 8 == 0 && aligned(table, y), [&](auto vector) {
    cuda::launch(gather_rows<vector.value>,
                 {row_tiles(tokens, columns, vector.value), kThreads, 0, stream},
                 numbers<std::int32_t>(tokens), numbers<Bf16>(table), columns, numbers<Bf16>(y));
  });
}

void embed_gradient(cudaStream_t stream, ArrayView tokens, ArrayView dy, int width,
                    ArrayView chains, ArrayView dtable) {
  const auto columns = static_cast<std::size_t>(width);
  const auto* ids = numbers<std::int32_t>(tokens);
  auto* const next = numbers<std::int32_t>(chains.part(0, tokens.count));
  auto* const first = numbers<std::int32_t>(chains.part(tokens.count, tokens.count));
  cuda::launch(chain_tokens,
               {cuda::blocks_for(tokens.count * kWarp, kThreads), kThreads, 0, stream}, ids,
               static_cast<int>(tokens.count), next, first);
  with_vector(width % 8 == 0 && aligned(dy, dtable), [&](auto vector) {
    cuda::launch_prepared(add_chains<vector.value>,
                          {row_tiles(tokens, columns, vector.value), kThreads, 0, stream}, ids,
                          next, first, numbers<Bf16>(dy), columns, numbers<float>(dtable));
  });
}

}  // namespace longhaul::nn
