#include "cuda/launch.hpp"

namespace longhaul::cuda::detail {

bool waits_for_kernel_before(const void* kernel) {
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel));
  return attributes.ptxVersion >= 90;
}

}  // namespace longhaul::cuda::detail
