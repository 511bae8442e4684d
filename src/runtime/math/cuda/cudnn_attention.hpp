#pragma once

#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include "runtime/math/cuda/attention.hpp"
#include "runtime/math/math.hpp"

namespace longhaul::cuda {

/// Causal attention by cuDNN. Meaning and shapes as in Math.
class CudnnAttention {
public:
  CudnnAttention() = default;
  virtual ~CudnnAttention() = default;
  CudnnAttention(const CudnnAttention&) = delete;
  CudnnAttention& operator=(const CudnnAttention&) = delete;

  /// Has it kernels for this shape? Asked once for each, and remembered.
  [[nodiscard]] virtual bool takes(const AttentionShape& shape) = 0;
  virtual void forward(const AttentionShape& shape, View qkv, View out, View log_sums) = 0;
  virtual void backward(const AttentionShape& shape, View qkv, View out, View log_sums, View dout,
                        View dqkv) = 0;
};

struct CudnnOffer {
  std::unique_ptr<CudnnAttention> attention;  ///< nullptr: our own is to be used
  std::string name;                           ///< "cuDNN 9.19.0", "own (why)"
};

/// cuDNN's attention, if it was built in, can be loaded, and agrees with `own` on a small problem,
/// forward and backward.
[[nodiscard]] CudnnOffer offer_cudnn(cudaStream_t stream, Pool& pool, OwnAttention& own);

}  // namespace longhaul::cuda
