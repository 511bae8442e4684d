#include <cfloat>

#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/row_shape.cuh"

namespace longhaul::nn {
namespace {

constexpr float kLog2E = 1.44269504088896341F;
constexpr int kPack = 8;  // rows of scores are ours: always aligned and padded

/// Where a block's row stands: query blockIdx.x of head blockIdx.y.
struct ScoreRow {
  std::size_t start;  ///< in the scores
  std::size_t sums;   ///< in log_sums and dots
  int limit;          ///< keys up to the diagonal

  __device__ explicit ScoreRow(const ScoreBlock& of)
      : start{(static_cast<std::size_t>(blockIdx.y) * static_cast<std::size_t>(of.queries) +
               blockIdx.x) *
              static_cast<std::size_t>(of.row_length)},
        limit{of.first_query + static_cast<int>(blockIdx.x) + 1} {
    const int head = of.first_head + static_cast<int>(blockIdx.y) * of.head_step;
    sums = static_cast<std::size_t>(head) * static_cast<std::size_t>(of.sequence) +
           static_cast<std::size_t>(limit - 1);
  }
};

/// Scale, mask and softmax of a row, and its log-sum: one read of the scores up to the diagonal,
/// one write of the weights.
template <int kHeld>
__global__ void __launch_bounds__(kThreads)
    softmax_rows(ScoreBlock of, const float* scores, Bf16* weights, float* log_sums) {
  LONGHAUL_SHARED float scratch[kThreads / kWarp];
  const ScoreRow at{of};
  const float factor = of.scale * kLog2E;
  Row<kPack, kHeld, float> row{scores + at.start};
  row.fill(at.limit);
  float largest = -FLT_MAX;
  each_pack<kPack, kHeld>(at.limit, [&](int held, int i) {
    const Numbers<kPack> numbers = row.at(held, i);
#pragma unroll
    for (int k = 0; k < kPack; ++k)
      if (i + k < at.limit) largest = fmaxf(largest, numbers.at[k]);
  });
  largest = factor * reduce_block(largest, scratch, Largest{});
  float sum = 0;
  each_pack<kPack, kHeld>(at.limit, [&](int held, int i) {
    const Numbers<kPack> numbers = row.at(held, i);
#pragma unroll
    for (int k = 0; k < kPack; ++k)
      if (i + k < at.limit) sum += exp2f(numbers.at[k] * factor - largest);
  });
  sum = reduce_block(sum, scratch, Sum{});
  const float share = 1 / sum;
  each_pack<kPack, kHeld>(of.row_length, [&](int held, int i) {
    Numbers<kPack> result{};
    if (i < at.limit) {
      const Numbers<kPack> numbers = row.at(held, i);
#pragma unroll
      for (int k = 0; k < kPack; ++k)
        if (i + k < at.limit) result.at[k] = share * exp2f(numbers.at[k] * factor - largest);
    }
    write(weights + at.start + i, result);
  });
  if (threadIdx.x == 0) log_sums[at.sums] = logf(sum) + largest / kLog2E;
}

struct GradientOfScores {
  const float *scores, *dweights, *log_sums, *dots;
  Bf16 *weights, *dscores;
};

/// Weights again, and their gradient put through the softmax: two reads up to the diagonal, two
/// writes. Where `dots` is the weights' own product with their gradient, which is that of the
/// output with its gradient (Dao et al. 2022), no sum over the row is needed.
__global__ void __launch_bounds__(kThreads)
    softmax_gradient_rows(ScoreBlock of, GradientOfScores gradient) {
  const ScoreRow at{of};
  const float factor = of.scale * kLog2E;
  const float log_sum = gradient.log_sums[at.sums] * kLog2E;
  const float dot = gradient.dots[at.sums];
  for (int i = this_thread() * kPack; i < of.row_length; i += kThreads * kPack) {
    Numbers<kPack> weights{}, dscores{};
    if (i < at.limit) {
      const Numbers<kPack> scores = read<kPack>(gradient.scores + at.start + i);
      const Numbers<kPack> dweights = read<kPack>(gradient.dweights + at.start + i);
#pragma unroll
      for (int k = 0; k < kPack; ++k) {
        if (i + k >= at.limit) continue;
        weights.at[k] = exp2f(scores.at[k] * factor - log_sum);
        dscores.at[k] = of.scale * weights.at[k] * (dweights.at[k] - dot);
      }
    }
    write(gradient.weights + at.start + i, weights);
    write(gradient.dscores + at.start + i, dscores);
  }
}

constexpr unsigned kLanes = 16;  ///< threads of one head of one token

struct Heads {
  unsigned heads, head_size, sequence;
};

template <int kVector>
__global__ void __launch_bounds__(kThreads)
    dot_heads(Heads of, const Bf16* out, const Bf16* dout, float* dots) {
  const std::size_t number = thread_of_all() / kLanes;
  const auto token = static_cast<unsigned>(number / of.heads);
  const auto head = static_cast<unsigned>(number % of.heads);
  const unsigned lane = threadIdx.x % kLanes;
  float dot = 0;
  if (token < of.sequence) {
    const std::size_t start = number * of.head_size;
    for (unsigned i = lane * kVector; i < of.head_size; i += kLanes * kVector) {
      const Numbers<kVector> a = read<kVector>(out + start + i);
      const Numbers<kVector> b = read<kVector>(dout + start + i);
#pragma unroll
      for (int k = 0; k < kVector; ++k) dot += a.at[k] * b.at[k];
    }
  }
#pragma unroll
  for (int offset = kLanes / 2; offset > 0; offset /= 2)
    dot += __shfl_xor_sync(kAllLanes, dot, offset);
  if (lane == 0 && token < of.sequence)
    dots[static_cast<std::size_t>(head) * of.sequence + token] = dot;
}

template <int kVector>
__global__ void __launch_bounds__(kThreads)
    scatter_rows(Heads of, std::size_t token_width, const float* sums, Bf16* columns) {
  const std::size_t first = thread_of_all() * kVector;  // in sums: [heads, sequence, head_size]
  const std::size_t row = first / of.head_size;
  if (row >= static_cast<std::size_t>(of.heads) * of.sequence) return;
  const std::size_t head = row / of.sequence, token = row % of.sequence;
  write(columns + token * token_width + head * of.head_size + first % of.head_size,
        read<kVector>(sums + first));
}

}  // namespace

void causal_softmax(cudaStream_t stream, const ScoreBlock& block, ArrayView scores,
                    ArrayView weights, ArrayView log_sums) {
  const dim3 rows{static_cast<unsigned>(block.queries), static_cast<unsigned>(block.heads)};
  with_row_shape(block.row_length, true, [&](auto, auto held) {
    cuda::launch(softmax_rows<held.value>, {rows, kThreads, 0, stream}, block,
                 numbers<float>(scores), numbers<Bf16>(weights), numbers<float>(log_sums));
  });
}

void causal_softmax_gradient(cudaStream_t stream, const ScoreBlock& block, ArrayView scores,
                             ArrayView dweights, ArrayView log_sums, ArrayView dots,
                             ArrayView weights, ArrayView dscores) {
  const dim3 rows{static_cast<unsigned>(block.queries), static_cast<unsigned>(block.heads)};
  cuda::launch(
      softmax_gradient_rows, {rows, kThreads, 0, stream}, block,
      GradientOfScores{numbers<float>(scores), numbers<float>(dweights), numbers<float>(log_sums),
                       numbers<float>(dots), numbers<Bf16>(weights), numbers<Bf16>(dscores)});
}

void head_dots(cudaStream_t stream, const AttentionShape& shape, ArrayView out, ArrayView dout,
               ArrayView dots) {
  const Heads of{static_cast<unsigned>(shape.heads), static_cast<unsigned>(shape.head_size),
                 static_cast<unsigned>(shape.sequence)};
  const std::size_t threads = static_cast<std::size_t>(of.sequence) * of.heads * kLanes;
  with_vector(of.head_size % 8 == 0 && aligned(out, dout), [&](auto vector) {
    cuda::launch(dot_heads<vector.value>,
                 {cuda::blocks_for(threads, kThreads), kThreads, 0, stream}, of, numbers<Bf16>(out),
                 numbers<Bf16>(dout), numbers<float>(dots));
  });
}

void scatter_heads(cudaStream_t stream, const AttentionShape& shape, ArrayView sums,
                   std::size_t first_column, ArrayView dqkv) {
  const Heads of{static_cast<unsigned>(shape.kv_heads), static_cast<unsigned>(shape.head_size),
                 static_cast<unsigned>(shape.sequence)};
  const ArrayView columns = dqkv.part(first_column, dqkv.count - first_column);
  with_vector(of.head_size % 8 == 0 && aligned(sums, columns), [&](auto vector) {
    cuda::launch(scatter_rows<vector.value>,
                 {vector_blocks(sums.count, vector.value), kThreads, 0, stream}, of, shape.width(),
                 numbers<float>(sums), numbers<Bf16>(columns));
  });
}

}  // namespace longhaul::nn
