#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// For every program, with CUDA and without: the GPUs that this process sees, marks for
/// profilers. src/cuda/accelerator.cpp answers where CUDA was built in,
/// src/cuda/without_gpu/without_cuda.cpp where not.
namespace longhaul::cuda {

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

/// A range of NVTX's domain "longhaul", for profilers; nothing without CUDA.
enum class Mark : std::uint64_t {};
Mark begin_mark(const std::string& name);
void end_mark(Mark mark);

/// Throws the Error of a program built without CUDA that is asked for it: for the files in
/// without_gpu/ of all modules, which are not compiled where CUDA is.
[[noreturn]] void refuse_without_cuda();

}  // namespace longhaul::cuda
