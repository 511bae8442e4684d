#pragma once

#include <cstddef>

#include "nn/cuda/attention.hpp"
#include "nn/cuda/gemm.hpp"
#include "nn/cuda/stream_memory_pool.hpp"

namespace longhaul::nn {

/// Our own causal attention: products of cuBLASLt with a softmax between them, one block of queries
/// at a time against the keys up to its end, so that about half of the square is left out. Scores
/// of a block (one query head of each key head) are held in fp32, the weights in bf16, in
/// kScratchBytes unless 128 rows alone take more. Meaning and shapes as in TensorOps.
class OwnAttention final : public Attention {
public:
  static constexpr std::size_t kScratchBytes = 512U << 20U;
  static constexpr int kMostQueries = 1024;

  /// `most_queries` of a block.
  OwnAttention(cudaStream_t stream, StreamMemoryPool& pool, Gemms& gemms,
               int most_queries = kMostQueries)
      : stream_{stream}, pool_{pool}, gemms_{gemms}, most_queries_{most_queries} {}

  [[nodiscard]] bool takes(const AttentionShape&) override { return true; }
  void forward(const AttentionShape& shape, ArrayView qkv, ArrayView out,
               ArrayView log_sums) override;
  void backward(const AttentionShape& shape, ArrayView qkv, ArrayView out, ArrayView log_sums,
                ArrayView dout, ArrayView dqkv) override;

private:
  struct Sequence;
  struct Block;
  [[nodiscard]] int queries_of_block(const AttentionShape& shape, std::size_t bytes_of_score) const;
  void forward(const Sequence& of, const Block& block, ArrayView scores, ArrayView weights);
  struct Gradients;
  void backward(const Sequence& of, const Block& block, const Gradients& gradients,
                bool accumulate);
  cudaStream_t stream_;
  StreamMemoryPool& pool_;
  Gemms& gemms_;
  int most_queries_;
};

}  // namespace longhaul::nn
