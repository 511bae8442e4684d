#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "nn/tensor_ops.hpp"

/// The kernels of CudaTensorOps, each called on a stream; shapes and meaning as in TensorOps.
/// Accesses are of 16 bytes where widths are multiples of 8 and views begin at multiples of 16
/// bytes, and one number at a time where not. docs/kernels.md counts the bytes that each moves.
namespace longhaul::nn {

/// Do all of these begin at a multiple of 16 bytes?
template <typename... Views>
[[nodiscard]] bool aligned(const Views&... views) {
  return (... && (reinterpret_cast<std::uintptr_t>(views.data) % 16 == 0));
}

/// Asserts that the view's numbers are of `type`. ({fmt} and nvcc do not go together.)
void expect_type(ArrayView view, NumberType type);

// elementwise.cu
void convert(cudaStream_t stream, ArrayView from, ArrayView to);
void add(cudaStream_t stream, ArrayView a, ArrayView b, ArrayView sum);
/// The same sum by so many blocks and no more: the multiprocessors that a collective's sum takes.
void add_on_few(cudaStream_t stream, unsigned blocks, ArrayView a, ArrayView b, ArrayView sum);
void fill_random(cudaStream_t stream, std::uint64_t seed, float bound, ArrayView what);

// norm.cu
void rms_norm(cudaStream_t stream, ArrayView x, ArrayView weight, int width, ArrayView y,
              ArrayView inverse_rms);
void rms_norm_input_gradient(cudaStream_t stream, ArrayView x, ArrayView weight,
                             ArrayView inverse_rms, ArrayView dy, int width, bool accumulate,
                             ArrayView dx);

// norm_weight.cu
/// Numbers (f32) of scratch that the gradient of the weight needs for `rows` rows.
[[nodiscard]] std::size_t weight_gradient_scratch(std::size_t rows, int width);
void rms_norm_weight_gradient(cudaStream_t stream, ArrayView x, ArrayView inverse_rms, ArrayView dy,
                              int width, ArrayView scratch, ArrayView dweight);

// rotary.cu; `turns`: cosine and sine, [sequence, head_size / 2, 2] f32
void rotary(cudaStream_t stream, const AttentionShape& shape, ArrayView turns, Direction direction,
            ArrayView qkv);

// swiglu.cu
void swiglu(cudaStream_t stream, ArrayView gate_up, int width, ArrayView y);
void swiglu_gradient(cudaStream_t stream, ArrayView gate_up, ArrayView dy, int width,
                     ArrayView dgate_up);

// embedding.cu; `chains`: 2 i32 for each token
void embed(cudaStream_t stream, ArrayView tokens, ArrayView table, int width, ArrayView y);
void embed_gradient(cudaStream_t stream, ArrayView tokens, ArrayView dy, int width,
                    ArrayView chains, ArrayView dtable);

// cross_entropy.cu; `losses`: one f32 for each token
void cross_entropy(cudaStream_t stream, ArrayView targets, int vocabulary, float scale,
                   ArrayView logits, ArrayView losses, ArrayView loss);

// optimizer.cu
void sgd(cudaStream_t stream, float learning_rate, ArrayView gradient, ArrayView master,
         ArrayView weights);
void adamw(cudaStream_t stream, const AdamW& options, ArrayView gradient, ArrayView mean,
           ArrayView square, ArrayView master, ArrayView weights);

/// Part of the scores of one sequence: rows [first_query, first_query + queries) of each of `heads`
/// query heads that stand `head_step` apart, from number `first_head` on. Scores are [heads,
/// queries, row_length], of which the first `keys` of a row count; what lies after the diagonal
/// does not.
struct ScoreBlock {
  int first_query = 0, queries = 0, keys = 0, row_length = 0;
  int heads = 0, first_head = 0, head_step = 1;
  int sequence = 0;  ///< length of a row of log_sums
  float scale = 1;
};

// softmax.cu
/// weights (bf16) = softmax(scale * scores) (f32), 0 after the diagonal, and its log_sums, of
/// which `log_sums` holds those of this sequence: [all heads, sequence].
void causal_softmax(cudaStream_t stream, const ScoreBlock& block, ArrayView scores,
                    ArrayView weights, ArrayView log_sums);
/// weights again from scores and log_sums; dscores (bf16) = scale * weights * (dweights - dots),
/// both 0 after the diagonal.
void causal_softmax_gradient(cudaStream_t stream, const ScoreBlock& block, ArrayView scores,
                             ArrayView dweights, ArrayView log_sums, ArrayView dots,
                             ArrayView weights, ArrayView dscores);
/// dots[head, query] = sum of out * dout over the head's numbers, for one sequence.
void head_dots(cudaStream_t stream, const AttentionShape& shape, ArrayView out, ArrayView dout,
               ArrayView dots);
/// Rounds sums [kv_heads, sequence, head_size] (f32) into their columns of dqkv, from number
/// `first_column` of each token on.
void scatter_heads(cudaStream_t stream, const AttentionShape& shape, ArrayView sums,
                   std::size_t first_column, ArrayView dqkv);

}  // namespace longhaul::nn
