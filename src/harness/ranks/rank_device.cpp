#include "harness/ranks/rank_device.hpp"

#include "base/error.hpp"
#include "cuda/accelerator.hpp"
#include "device/cpu_devices.hpp"
#include "device/cuda/factories.hpp"
#include "engine/payloads/synthetic_data_plane.hpp"
#include "host/rank_accelerator.hpp"
#include "nn/cpu/cpu_tensor_ops.hpp"
#include "nn/cuda/factory.hpp"

namespace longhaul::harness {
namespace {

/// This rank's among those of its host.
int gpu_of(const engine::Ranks& ranks) {
  const std::string why = cuda::why_no_accelerator();
  if (!why.empty()) fail("--device cuda cannot compute here ({}). Use --device cpu.", why);
  return host::accelerator_of(ranks.host_ranks());
}

}  // namespace

DeviceKind device_kind_of(const std::string& text) {
  if (const auto kind = from_string<DeviceKind>(text)) return *kind;
  fail("--device {} is neither cpu nor cuda. Write --device cpu.", text);
}

std::unique_ptr<nn::TensorOps> make_math(DeviceKind kind, const engine::Ranks& ranks) {
  if (kind == DeviceKind::cpu) return nn::make_cpu_math();
  return nn::make_cuda_tensor_ops(gpu_of(ranks));
}

std::unique_ptr<engine::Device> make_timed_device(DeviceKind kind, const engine::Ranks& ranks,
                                                  Duration credit) {
  if (kind == DeviceKind::cpu) return std::make_unique<device::TimedDevice>();
  return device::make_cuda_timed_device(gpu_of(ranks), credit);
}

std::unique_ptr<engine::DataPlane> make_data_plane(DeviceKind kind, const engine::Ranks& ranks,
                                                   const Plan& plan,
                                                   const engine::EngineOptions& options) {
  if (kind == DeviceKind::cpu)
    return std::make_unique<engine::SyntheticDataPlane>(plan, ranks.self(), options.run.seed,
                                                        options.payload);
  return device::make_cuda_data_plane(gpu_of(ranks), plan, ranks.self(), options.run.seed,
                                      options.payload);
}

std::unique_ptr<engine::Device> make_real_device(DeviceKind kind, const engine::Ranks& ranks,
                                                 engine::BlockWork& work, nn::TensorOps& math) {
  if (kind == DeviceKind::cpu)
    return std::make_unique<device::LayerDevice>(work, ranks.host_ranks());
  return device::make_cuda_layer_device(gpu_of(ranks), math, work);
}

}  // namespace longhaul::harness
