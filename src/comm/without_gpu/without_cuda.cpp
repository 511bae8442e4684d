#include "comm/cuda/device_ways.hpp"
#include "cuda/accelerator.hpp"

namespace longhaul {

std::unique_ptr<PayloadWay> make_staged_way(const BackendPlace& /*place*/) {
  refuse_without_cuda();
}
std::unique_ptr<PayloadWay> make_ipc_way(const BackendPlace& /*place*/) { refuse_without_cuda(); }

}  // namespace longhaul
