#include "nn/cuda/attention.hpp"

namespace longhaul::nn {

CudnnOffer offer_cudnn(cudaStream_t, StreamMemoryPool&, Attention&) {
  return {nullptr, "own (built without cuDNN and its front end)"};
}

}  // namespace longhaul::nn
