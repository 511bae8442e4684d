#include "comm/cuda/device_backends.hpp"
#include "comm/nccl/nccl_backend.hpp"
#include "cuda/handles.hpp"

namespace longhaul {

std::string nccl_version() { return fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH); }

std::unique_ptr<PayloadBackend> make_nccl_backend(const BackendPlace& place) {
  cuda::use_device(place.index);
  return std::make_unique<nccl::NcclBackend>(place.world, place.index);
}

}  // namespace longhaul
