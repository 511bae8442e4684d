#pragma once

#include <cstddef>
#include <source_location>
#include <utility>

#include <cuda_runtime.h>

#include "cuda/check.hpp"

namespace longhaul::cuda {

/// How a kernel is started. `shared_bytes`: dynamic shared memory (LONGHAUL_DYNAMIC_SHARED), up to
/// what a block may have (227 KiB on sm_90).
struct Launch {
  Launch(dim3 grid, dim3 block, std::size_t dynamic_bytes, cudaStream_t on,
         std::source_location from = std::source_location::current())
      : blocks{grid}, threads{block}, shared_bytes{dynamic_bytes}, stream{on}, where{from} {}

  dim3 blocks, threads;
  std::size_t shared_bytes;
  cudaStream_t stream;
  std::source_location where;
};

/// Blocks of `each` that cover `count`.
[[nodiscard]] constexpr unsigned blocks_for(std::size_t count, std::size_t each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

/// launch(kernel, {blocks, threads, shared_bytes, stream}, arguments...): the one way to start a
/// kernel. Arguments are converted to the kernel's parameters here. No blocks: nothing happens.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const Launch& how, Arguments&&... arguments) {
  if (how.blocks.x == 0 || how.blocks.y == 0 || how.blocks.z == 0) return;
  if (how.shared_bytes > 48U * 1024U)  // what a block has without being asked for
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(how.shared_bytes)),
          how.where);
  cudaLaunchConfig_t config{};
  config.gridDim = how.blocks;
  config.blockDim = how.threads;
  config.dynamicSmemBytes = how.shared_bytes;
  config.stream = how.stream;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), how.where);
}

}  // namespace longhaul::cuda
