#include "cuda/accelerator.hpp"
#include "device/cuda/factories.hpp"

namespace longhaul::device {

std::unique_ptr<engine::Device> make_cuda_timed_device(int /*index*/, Duration /*credit*/) {
  cuda::refuse_without_cuda();
}

std::unique_ptr<engine::Device> make_cuda_layer_device(int /*index*/, nn::TensorOps& /*math*/,
                                                       engine::BlockWork& /*work*/) {
  cuda::refuse_without_cuda();
}

std::unique_ptr<engine::DataPlane> make_cuda_data_plane(int /*index*/, const Plan& /*plan*/,
                                                        Rank /*self*/, std::uint64_t /*seed*/,
                                                        Bytes /*largest*/) {
  cuda::refuse_without_cuda();
}

std::unique_ptr<DeviceGradient> make_cuda_gradient(int /*index*/, std::int64_t /*count*/,
                                                   std::int64_t /*room*/) {
  cuda::refuse_without_cuda();
}

AcceleratorClock accelerator_clock(int /*index*/) { cuda::refuse_without_cuda(); }

}  // namespace longhaul::device
