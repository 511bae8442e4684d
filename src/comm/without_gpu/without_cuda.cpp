#include "comm/cuda/device_backends.hpp"
#include "cuda/accelerator.hpp"

namespace longhaul::comm {

std::unique_ptr<PayloadBackend> make_staged_backend(const BackendPlace& /*place*/) {
  cuda::refuse_without_cuda();
}
std::unique_ptr<PayloadBackend> make_ipc_backend(const BackendPlace& /*place*/) {
  cuda::refuse_without_cuda();
}

}  // namespace longhaul::comm
