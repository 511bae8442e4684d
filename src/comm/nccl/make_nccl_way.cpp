#include "comm/cuda/device_ways.hpp"
#include "comm/nccl/nccl_way.hpp"
#include "cuda/handles.hpp"

namespace longhaul {

std::string nccl_version() { return fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH); }

std::unique_ptr<PayloadWay> make_nccl_way(const BackendPlace& place) {
  cuda::use_device(place.index);
  return std::make_unique<nccl::NcclWay>(place.world, place.index);
}

}  // namespace longhaul
