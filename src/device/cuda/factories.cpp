#include "device/cuda/factories.hpp"

#include <cstdlib>

#include "base/error.hpp"
#include "cuda/accelerator.hpp"
#include "cuda/device_clock.hpp"
#include "device/cuda/cuda_devices.hpp"
#include "device/cuda/cuda_gradient.hpp"
#include "device/cuda/cuda_synthetic_data_plane.hpp"
#include "nn/cuda/cuda_tensor_ops.hpp"

namespace longhaul::device {
namespace {

/// Streams share the queues of the hardware, 8 of them unless asked for more: a spin kernel in
/// front of another stream's work would hold that up. Read by the driver when it makes a context;
/// no threads run yet at that time.
[[maybe_unused]] const int kQueues = setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);

/// Between GPUs of one process NCCL writes straight into what it is given, and memory of a pool is
/// for its own GPU alone: let it go through buffers of its own. Read when NCCL starts.
[[maybe_unused]] const int kNcclBuffers = setenv("NCCL_P2P_DIRECT_DISABLE", "1", 0);

void require(int index) {
  const std::string why = cuda::why_no_accelerator();
  if (!why.empty()) fail("device {} cannot be used ({}). Use --device cpu.", index, why);
}

}  // namespace

std::unique_ptr<engine::Device> make_cuda_timed_device(int index, Duration credit) {
  require(index);
  return std::make_unique<CudaTimedDevice>(index, credit);
}

std::unique_ptr<engine::Device> make_cuda_layer_device(int index, nn::TensorOps& math,
                                                       engine::BlockWork& work) {
  require(index);
  auto* const on_gpu = dynamic_cast<nn::CudaTensorOps*>(&math);
  LONGHAUL_ASSERT(on_gpu != nullptr, "device {} runs the math of another one", index);
  return std::make_unique<CudaLayerDevice>(index, work, on_gpu->stream());
}

std::unique_ptr<engine::DataPlane> make_cuda_data_plane(int index, const Plan& plan, Rank self,
                                                        std::uint64_t seed, Bytes largest) {
  require(index);
  return std::make_unique<CudaSyntheticDataPlane>(index, plan, self, seed, largest);
}

std::unique_ptr<DeviceGradient> make_cuda_gradient(int index, std::int64_t count,
                                                   std::int64_t room) {
  require(index);
  return std::make_unique<CudaGradient>(index, count, room);
}

AcceleratorClock accelerator_clock(int index) {
  require(index);
  const cuda::DeviceClock& clock = cuda::DeviceClock::of(index);
  return {clock.error(), clock.largest_error(), clock.tick(), clock.drift()};
}

}  // namespace longhaul::device
