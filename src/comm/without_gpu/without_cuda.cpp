#include "comm/cuda/device_backends.hpp"
#include "cuda/accelerator.hpp"

namespace longhaul {

std::unique_ptr<PayloadBackend> make_device_backend(TransportKind /*kind*/, Transport& /*host*/,
                                                    const mpi::Communicator& /*world*/,
                                                    const HostRanks& /*host_ranks*/,
                                                    int /*index*/) {
  refuse_without_cuda();
}

}  // namespace longhaul
