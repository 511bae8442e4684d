#include "comm/cuda/device_backends.hpp"

#include <mpi.h>
#if defined(OPEN_MPI) && __has_include(<mpi-ext.h>)
#include <mpi-ext.h>
#endif

#include "comm/cuda/ipc_backend.hpp"
#include "comm/cuda/staged_backend.hpp"
#include "cuda/handles.hpp"

namespace longhaul::comm {
namespace {

/// True where this MPI says that it takes memory of CUDA devices in its calls. Debian's does not.
bool takes_device_memory() {
#if defined(MPIX_CUDA_AWARE_SUPPORT)
  return MPIX_Query_cuda_support() == 1;
#elif defined(MPICH_VERSION) && defined(MPIX_GPU_SUPPORT_CUDA)
  int yes = 0;
  return MPIX_GPU_query_support(MPIX_GPU_SUPPORT_CUDA, &yes) == MPI_SUCCESS && yes != 0;
#else
  return false;
#endif
}

}  // namespace

std::unique_ptr<PayloadBackend> make_staged_backend(const BackendPlace& place) {
  cuda::use_device(place.index);
  // Threads hand over by memcpy, which takes no device memory.
  const bool as_it_is = !place.world.is_of_threads() && takes_device_memory();
  return std::make_unique<StagedBackend>(place.host, place.index,
                                         as_it_is ? StagedBackend::DeviceMemory::as_it_is
                                                  : StagedBackend::DeviceMemory::through_pinned);
}

std::unique_ptr<PayloadBackend> make_ipc_backend(const BackendPlace& place) {
  cuda::use_device(place.index);
  return std::make_unique<CudaIpcBackend>(place.host, place.host_ranks, place.index);
}

}  // namespace longhaul::comm
