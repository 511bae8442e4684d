#include "cuda/launch.hpp"

namespace longhaul::cuda::detail {

bool device_prepares_kernels() {
  static const bool prepares = [] {
    int major = 0;
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
    return major >= 9;
  }();
  return prepares;
}

}  // namespace longhaul::cuda::detail
