#include "comm/cuda/device_backends.hpp"

#include "comm/cuda/ipc_backend.hpp"
#include "comm/cuda/staged_backend.hpp"
#include "comm/mpi/device_memory.hpp"
#include "cuda/handles.hpp"

namespace longhaul {

std::unique_ptr<PayloadBackend> make_staged_backend(const BackendPlace& place) {
  using cuda::StagedBackend;
  cuda::use_device(place.index);
  // Threads hand over by memcpy, which takes no device memory.
  const bool as_it_is = !place.world.is_of_threads() && mpi::takes_device_memory();
  return std::make_unique<StagedBackend>(place.host, place.index,
                                         as_it_is ? StagedBackend::DeviceMemory::as_it_is
                                                  : StagedBackend::DeviceMemory::through_pinned);
}

std::unique_ptr<PayloadBackend> make_ipc_backend(const BackendPlace& place) {
  cuda::use_device(place.index);
  return std::make_unique<cuda::CudaIpcBackend>(place.host, place.host_ranks, place.index);
}

}  // namespace longhaul
