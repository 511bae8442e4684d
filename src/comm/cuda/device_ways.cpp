#include "comm/cuda/device_ways.hpp"

#include "comm/cuda/ipc_way.hpp"
#include "comm/cuda/staged_way.hpp"
#include "comm/mpi/device_memory.hpp"
#include "cuda/handles.hpp"

namespace longhaul {

std::unique_ptr<PayloadWay> make_staged_way(const BackendPlace& place) {
  using cuda::StagedWay;
  cuda::use_device(place.index);
  // Threads hand over by memcpy, which takes no device memory.
  const bool as_it_is = !place.world.is_of_threads() && mpi::takes_device_memory();
  return std::make_unique<StagedWay>(
      place.host, place.index,
      as_it_is ? StagedWay::DeviceMemory::as_it_is : StagedWay::DeviceMemory::through_pinned);
}

std::unique_ptr<PayloadWay> make_ipc_way(const BackendPlace& place) {
  cuda::use_device(place.index);
  return std::make_unique<cuda::IpcWay>(place.host, place.board, place.index);
}

}  // namespace longhaul
