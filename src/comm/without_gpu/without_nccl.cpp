#include "base/error.hpp"
#include "comm/cuda/device_backends.hpp"

namespace longhaul::comm {

std::string nccl_version() { return ""; }

std::unique_ptr<PayloadBackend> make_nccl_backend(const BackendPlace& /*place*/) {
  fail(
      "NCCL cannot be used (built without it). Configure with -DLONGHAUL_WITH_NCCL=ON where nccl.h "
      "is, or use --transport cuda-ipc or mpi.");
}

}  // namespace longhaul::comm
