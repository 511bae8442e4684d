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

namespace detail {

enum class Start { after_kernel_before, prepared };

/// Was the kernel compiled for compute capability 9.0, so that it waits for the one before it? Code
/// for earlier ones does not, whatever device it runs on.
[[nodiscard]] bool waits_for_kernel_before(const void* kernel);

template <typename... Parameters, typename... Arguments>
void launch_as(Start start, void (*kernel)(Parameters...), const Launch& how,
               Arguments&&... arguments) {
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
  cudaLaunchAttribute prepared{};
  prepared.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  prepared.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &prepared;
  if (start == Start::prepared) {
    // One answer for all kernels of these parameters: all are compiled for the same.
    static const bool waits = waits_for_kernel_before(reinterpret_cast<const void*>(kernel));
    config.numAttrs = waits ? 1 : 0;
  }
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...), how.where);
}

}  // namespace detail

/// launch(kernel, {blocks, threads, shared_bytes, stream}, arguments...): the one way to start a
/// kernel. Arguments are converted to the kernel's parameters here. No blocks: nothing happens.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), const Launch& how, Arguments&&... arguments) {
  detail::launch_as(detail::Start::after_kernel_before, kernel, how,
                    std::forward<Arguments>(arguments)...);
}

/// The same for a kernel that needs what the one before it in its stream writes, and is brought to
/// the device while that one still runs, where the device can: a shorter gap between them. All its
/// threads must call wait_for_kernel_before() (cuda/intrinsics.hpp) before anything else.
template <typename... Parameters, typename... Arguments>
void launch_prepared(void (*kernel)(Parameters...), const Launch& how, Arguments&&... arguments) {
  detail::launch_as(detail::Start::prepared, kernel, how, std::forward<Arguments>(arguments)...);
}

}  // namespace longhaul::cuda
