#include "base/error.hpp"
#include "comm/cuda/device_ways.hpp"

namespace longhaul {

std::string nccl_version() { return ""; }

std::unique_ptr<PayloadWay> make_nccl_way(const BackendPlace& /*place*/) {
  fail(
      "NCCL cannot be used (built without it). Configure with -DLONGHAUL_WITH_NCCL=ON where nccl.h "
      "is, or use --transport cuda-ipc or mpi.");
}

}  // namespace longhaul
