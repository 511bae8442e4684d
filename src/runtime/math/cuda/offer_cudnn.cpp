#include "runtime/math/cuda/cudnn_attention.hpp"

#ifdef LONGHAUL_WITH_CUDNN

#else

namespace longhaul::cuda {

CudnnOffer offer_cudnn(cudaStream_t, Pool&, OwnAttention&) {
  return {nullptr, "own (built without cuDNN)"};
}

}  // namespace longhaul::cuda

#endif
