#pragma once

#include <cstdint>
#include <memory>

#include "base/units.hpp"
#include "device/device_gradient.hpp"
#include "engine/device.hpp"
#include "engine/payloads/data_plane.hpp"
#include "nn/tensor_ops.hpp"

/// Made by src/device/cuda where CUDA was built in, refused by src/device/without_gpu where not.
namespace longhaul::device {

/// Blocks on device `index`, stamped there, two at a time (docs/runtime.md, On a GPU): timed ones,
/// or those that `work` gives to `math`, which make_cuda_tensor_ops made for the same device.
/// `credit` as in EngineOptions. Devices and data planes belong to the thread that makes them.
[[nodiscard]] std::unique_ptr<engine::Device> make_cuda_timed_device(int index, Duration credit);
[[nodiscard]] std::unique_ptr<engine::Device> make_cuda_layer_device(int index, nn::TensorOps& math,
                                                                     engine::BlockWork& work);
/// SyntheticDataPlane whose payloads lie in the memory of device `index`.
[[nodiscard]] std::unique_ptr<engine::DataPlane> make_cuda_data_plane(int index, const Plan& plan,
                                                                      Rank self, std::uint64_t seed,
                                                                      Bytes largest);

/// A gradient of `count` numbers on device `index`, of which selections may take up to `room`.
[[nodiscard]] std::unique_ptr<DeviceGradient> make_cuda_gradient(int index, std::int64_t count,
                                                                 std::int64_t room);

/// How well a device's stamps are known on this host's clock.
struct AcceleratorClock {
  Duration error{};          ///< of the last measurement
  Duration largest_error{};  ///< of all, with what extrapolation between two of them missed by
  Duration tick{};           ///< of the device's clock
  double drift = 0;          ///< its nanoseconds per host's, less 1
};
[[nodiscard]] AcceleratorClock accelerator_clock(int index);

}  // namespace longhaul::device
