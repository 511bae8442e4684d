#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "nn/math.hpp"

/// The kernels behind CudaMath, each called on a stream; shapes and meaning as in Math. Accesses
/// are of 16 bytes where widths are multiples of 8 and views begin at multiples of 16 bytes, and
/// one number at a time where not. docs/kernels.md counts the bytes that each moves.
namespace longhaul::cuda {

/// Do all of these begin at a multiple of 16 bytes?
template <typename... Views>
[[nodiscard]] bool aligned(const Views&... views) {
  return (... && (reinterpret_cast<std::uintptr_t>(views.data) % 16 == 0));
}

/// Asserts that the view's numbers are of `type`. ({fmt} and nvcc do not go together.)
void expect_type(View view, NumberType type);

// elementwise.cu
void convert(cudaStream_t stream, View from, View to);
void add(cudaStream_t stream, View a, View b, View sum);
void fill_random(cudaStream_t stream, std::uint64_t seed, float bound, View what);

// norm.cu
void rms_norm(cudaStream_t stream, View x, View weight, int width, View y, View inverse_rms);
void rms_norm_input_gradient(cudaStream_t stream, View x, View weight, View inverse_rms, View dy,
                             int width, bool accumulate, View dx);

// norm_weight.cu
/// Numbers (f32) of scratch that the gradient of the weight needs for `rows` rows.
[[nodiscard]] std::size_t weight_gradient_scratch(std::size_t rows, int width);
void rms_norm_weight_gradient(cudaStream_t stream, View x, View inverse_rms, View dy, int width,
                              View scratch, View dweight);

// rotary.cu; `turns`: cosine and sine, [sequence, head_size / 2, 2] f32
void rotary(cudaStream_t stream, const AttentionShape& shape, View turns, Direction direction,
            View qkv);

// swiglu.cu
void swiglu(cudaStream_t stream, View gate_up, int width, View y);
void swiglu_gradient(cudaStream_t stream, View gate_up, View dy, int width, View dgate_up);

// embedding.cu; `chains`: 2 i32 for each token
void embed(cudaStream_t stream, View tokens, View table, int width, View y);
void embed_gradient(cudaStream_t stream, View tokens, View dy, int width, View chains, View dtable);

// cross_entropy.cu; `losses`: one f32 for each token
void cross_entropy(cudaStream_t stream, View targets, int vocabulary, float scale, View logits,
                   View losses, View loss);

// optimizer.cu
void sgd(cudaStream_t stream, float learning_rate, View gradient, View master, View weights);
void adamw(cudaStream_t stream, const AdamW& options, View gradient, View mean, View square,
           View master, View weights);

/// Part of the scores of one sequence: rows [first_query, first_query + queries) of each of `heads`
/// query heads that stand `head_step` apart, from number `first_head` on. Scores are [heads,
/// queries, row_length], of which the first `keys` of a row count; what lies behind the diagonal
/// does not.
struct ScoreBlock {
  int first_query = 0, queries = 0, keys = 0, row_length = 0;
  int heads = 0, first_head = 0, head_step = 1;
  int sequence = 0;  ///< length of a row of log_sums
  float scale = 1;
};

// softmax.cu
/// weights (bf16) = softmax(scale * scores) (f32), 0 behind the diagonal, and its log_sums, of
/// which `log_sums` holds those of this sequence: [all heads, sequence].
void causal_softmax(cudaStream_t stream, const ScoreBlock& block, View scores, View weights,
                    View log_sums);
/// weights again from scores and log_sums; dscores (bf16) = scale * weights * (dweights - dots),
/// both 0 behind the diagonal.
void causal_softmax_gradient(cudaStream_t stream, const ScoreBlock& block, View scores,
                             View dweights, View log_sums, View dots, View weights, View dscores);
/// dots[head, query] = sum of out * dout over the head's numbers, for one sequence.
void head_dots(cudaStream_t stream, const AttentionShape& shape, View out, View dout, View dots);
/// Rounds sums [kv_heads, sequence, head_size] (f32) into their columns of dqkv, from number
/// `first_column` of each token on.
void scatter_heads(cudaStream_t stream, const AttentionShape& shape, View sums,
                   std::size_t first_column, View dqkv);

}  // namespace longhaul::cuda
