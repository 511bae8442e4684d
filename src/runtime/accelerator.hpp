#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/units.hpp"
#include "runtime/cargo.hpp"
#include "runtime/device/block_work.hpp"
#include "runtime/device/device.hpp"
#include "runtime/math/math.hpp"

/// What the rest of the program may ask of CUDA. src/runtime/cuda/accelerator.cpp answers where it
/// was built in, src/runtime/without_cuda.cpp where not.
namespace longhaul {

struct AcceleratorInfo {
  std::string name;
  std::string driver;  ///< "13.0"
  int multiprocessors = 0;
  std::size_t memory_bytes = 0;
  std::string uuid;
  std::vector<std::string>
      beyond_reach{};  ///< uuids of those here whose memory it cannot copy from
};

/// Was this program built with CUDA (LONGHAUL_WITH_CUDA)?
[[nodiscard]] bool built_with_cuda();
/// Devices that this process can use; empty without CUDA, without a driver, without a GPU.
[[nodiscard]] std::vector<AcceleratorInfo> accelerators();
/// Why there are none: "built without CUDA", "no driver: ...". Empty where there are.
[[nodiscard]] std::string why_no_accelerator();
/// bf16 on device `index`; throws Error where there is none.
[[nodiscard]] std::unique_ptr<Math> make_cuda_math(int index);
/// What a record should say of how `math` computes: "attention: cuDNN 9.19.0". Empty for a CPU.
[[nodiscard]] std::string accelerator_notes(const Math& math);

/// Blocks on device `index`, stamped there, two at a time (docs/runtime.md, On a GPU): timed ones,
/// or those that `work` gives to `math`, which make_cuda_math made for the same device. `credit` as
/// in EngineOptions. Devices and cargos belong to the thread that makes them.
[[nodiscard]] std::unique_ptr<Device> make_cuda_timed_device(int index, Duration credit);
[[nodiscard]] std::unique_ptr<Device> make_cuda_real_device(int index, Math& math, BlockWork& work);
/// MadeUpCargo whose payloads lie in the memory of device `index`.
[[nodiscard]] std::unique_ptr<Cargo> make_cuda_cargo(int index, const Plan& plan, Rank self,
                                                     std::uint64_t seed, Bytes largest);

/// How well a device's stamps are known on this host's clock.
struct AcceleratorClock {
  Duration error{};          ///< of the last measurement
  Duration largest_error{};  ///< of all, with what extrapolation between two of them missed by
  Duration tick{};           ///< of the device's clock
  double drift = 0;          ///< its nanoseconds per host's, less 1
};
[[nodiscard]] AcceleratorClock accelerator_clock(int index);

/// A range of NVTX's domain "longhaul", for profilers; nothing without CUDA.
enum class Mark : std::uint64_t {};
Mark begin_mark(const std::string& name);
void end_mark(Mark mark);

}  // namespace longhaul
