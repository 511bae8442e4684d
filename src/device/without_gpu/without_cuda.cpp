#include "cuda/without_gpu/refusal.hpp"
#include "device/cuda/factories.hpp"

namespace longhaul {

std::unique_ptr<Device> make_cuda_timed_device(int /*index*/, Duration /*credit*/) {
  refuse_without_cuda();
}

std::unique_ptr<Device> make_cuda_layer_device(int /*index*/, TensorOps& /*math*/,
                                               BlockWork& /*work*/) {
  refuse_without_cuda();
}

std::unique_ptr<DataPlane> make_cuda_data_plane(int /*index*/, const Plan& /*plan*/, Rank /*self*/,
                                                std::uint64_t /*seed*/, Bytes /*largest*/) {
  refuse_without_cuda();
}

AcceleratorClock accelerator_clock(int /*index*/) { refuse_without_cuda(); }

}  // namespace longhaul
