#include "comm/cuda/device_backends.hpp"
#include "comm/nccl/nccl_backend.hpp"

namespace longhaul {

std::string nccl_version() { return fmt::format("{}.{}.{}", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH); }

std::unique_ptr<PayloadBackend> make_nccl_backend(const mpi::Communicator& world, int index) {
  return std::make_unique<nccl::NcclBackend>(world, index);
}

}  // namespace longhaul
