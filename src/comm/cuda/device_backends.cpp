#include "comm/cuda/device_backends.hpp"

#include "base/error.hpp"
#include "comm/cuda/ipc_backend.hpp"
#include "comm/cuda/staged_backend.hpp"
#include "comm/mpi/device_memory.hpp"
#include "cuda/handles.hpp"

namespace longhaul {

std::unique_ptr<PayloadBackend> make_device_backend(TransportKind kind, Transport& host,
                                                    const mpi::Communicator& world,
                                                    const HostRanks& host_ranks, int index) {
  using cuda::StagedBackend;
  cuda::use_device(index);
  switch (kind) {
    case TransportKind::nccl: return make_nccl_backend(world, index);
    case TransportKind::cuda_ipc:
      return std::make_unique<cuda::CudaIpcBackend>(host, host_ranks, index);
    case TransportKind::mpi: {
      // Threads hand over by memcpy, which takes no device memory.
      const bool as_it_is = !world.is_of_threads() && mpi::takes_device_memory();
      return std::make_unique<StagedBackend>(host, index,
                                             as_it_is
                                                 ? StagedBackend::DeviceMemory::as_it_is
                                                 : StagedBackend::DeviceMemory::through_pinned);
    }
    case TransportKind::automatic: break;
  }
  LONGHAUL_ASSERT(false, "transport {} was not chosen", static_cast<int>(kind));
}

}  // namespace longhaul
