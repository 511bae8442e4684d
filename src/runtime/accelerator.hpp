#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

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
};

/// Was this program built with CUDA (LONGHAUL_WITH_CUDA)?
[[nodiscard]] bool built_with_cuda();
/// Devices that this process can use; empty without CUDA, without a driver, without a GPU.
[[nodiscard]] std::vector<AcceleratorInfo> accelerators();
/// Why there are none: "built without CUDA", "no driver: ...". Empty where there are.
[[nodiscard]] std::string why_no_accelerator();
/// bf16 on device `index`; throws Error where there is none.
[[nodiscard]] std::unique_ptr<Math> make_cuda_math(int index);

}  // namespace longhaul
