#include "comm/cuda/device_ways.hpp"

#include "base/error.hpp"
#include "comm/cuda/ipc_way.hpp"
#include "comm/cuda/staged_way.hpp"
#include "comm/mpi/device_memory.hpp"
#include "cuda/handles.hpp"

namespace longhaul {

std::unique_ptr<PayloadWay> make_device_way(TransportKind kind, Transport& host,
                                            const mpi::Communicator& world, const Board& board,
                                            int index) {
  using cuda::StagedWay;
  cuda::use_device(index);
  switch (kind) {
    case TransportKind::nccl: return make_nccl_way(world, index);
    case TransportKind::cuda_ipc: return std::make_unique<cuda::IpcWay>(host, board, index);
    case TransportKind::mpi: {
      // Threads hand over by memcpy, which takes no device memory.
      const bool as_it_is = !world.is_of_threads() && mpi::takes_device_memory();
      return std::make_unique<StagedWay>(
          host, index,
          as_it_is ? StagedWay::DeviceMemory::as_it_is : StagedWay::DeviceMemory::through_pinned);
    }
    case TransportKind::automatic: break;
  }
  LONGHAUL_ASSERT(false, "transport {} was not chosen", static_cast<int>(kind));
}

}  // namespace longhaul
