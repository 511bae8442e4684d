#pragma once

#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include "nn/cuda/stream_memory_pool.hpp"
#include "nn/tensor_ops.hpp"

namespace longhaul::nn {

/// Causal attention on one stream, our own or a library's. Meaning and shapes as in TensorOps.
class Attention {
public:
  Attention() = default;
  virtual ~Attention() = default;
  Attention(const Attention&) = delete;
  Attention& operator=(const Attention&) = delete;

  /// Can it do this shape? May take long when first asked for one.
  [[nodiscard]] virtual bool takes(const AttentionShape& shape) = 0;
  virtual void forward(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                       ArrayView log_sums) = 0;
  virtual void backward(const AttentionShape& shape, ArrayView qkv, ArrayView out,
                        ArrayView log_sums, ArrayView dout, ArrayView dqkv) = 0;
};

/// How far `other` is from `own` on random numbers, over outputs, log-sums and gradients: the
/// largest |a - b| / |b|, infinite where a number is none. Waits for the stream.
[[nodiscard]] double disagreement(cudaStream_t stream, StreamMemoryPool& pool,
                                  const AttentionShape& shape, Attention& other, Attention& own);

struct CudnnOffer {
  std::unique_ptr<Attention> attention;  ///< nullptr: our own is to be used
  std::string name;                      ///< "cuDNN 9.19.0", "own (why)"
};

/// cuDNN's attention, if it was built in (cudnn_attention.cpp, or without_cudnn.cpp where not), can
/// be loaded, and agrees with `own` on small problems, forward and backward. Never throws for
/// cuDNN: a benchmark of layers goes on without it, and says so.
[[nodiscard]] CudnnOffer offer_cudnn(cudaStream_t stream, StreamMemoryPool& pool, Attention& own);

}  // namespace longhaul::nn
