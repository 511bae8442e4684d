#pragma once

#include <memory>
#include <string>

#include <cuda_runtime_api.h>

#include "nn/cuda/attention.hpp"

namespace longhaul::nn {

struct CudnnOffer {
  std::unique_ptr<Attention> attention;  ///< nullptr: our own is to be used
  std::string name;                      ///< "cuDNN 9.19.0", "own (why)"
};

/// cuDNN's attention, if it was built in (cudnn_attention.cpp, or without_cudnn.cpp where not), can
/// be loaded, and agrees with `own` on small problems, forward and backward. Never throws for
/// cuDNN: a benchmark of layers goes on without it, and says so.
[[nodiscard]] CudnnOffer offer_cudnn(cudaStream_t stream, StreamMemoryPool& pool, Attention& own);

}  // namespace longhaul::nn
