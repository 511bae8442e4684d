#pragma once

#include <cstdint>

#include <cuda_runtime.h>

/// Instructions without a function in CUDA's headers: the only inline PTX of this program. For .cu
/// files. (The emulator for tests, tests/cuda_emulator, has its own file of this name.)
namespace longhaul::cuda {

/// Shared memory of a block: LONGHAUL_SHARED float sums[32];
#define LONGHAUL_SHARED __shared__

/// The dynamic shared memory of a launch as an array: LONGHAUL_DYNAMIC_SHARED(float, tile);
#define LONGHAUL_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char longhaul_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(longhaul_dynamic_shared)

/// First of all in kernels that launch_prepared() starts: afterwards all that the kernel before did
/// is done, and what it wrote is there.
__device__ inline void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Nanoseconds of the device's clock, the same for all its multiprocessors. It ticks coarsely (1 us
/// by default on some cards) and starts anywhere.
__device__ inline std::uint64_t global_timer() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

/// Gives the multiprocessor to others for about `nanoseconds` (at most 1 ms, 0 to twice that).
__device__ inline void nanosleep(unsigned nanoseconds) { __nanosleep(nanoseconds); }

/// Writes and reads past the caches of one block: what the host or another kernel watches in pinned
/// memory.
__device__ inline void store_for_system(std::uint64_t* where, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(where), "l"(value) : "memory");
}
__device__ inline std::uint64_t load_of_system(const std::uint64_t* where) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(where) : "memory");
  return value;
}

/// 16 bytes that are read and written at once; `address` is a multiple of 16.
template <typename T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(T);
  T values[kCount];
};
template <typename T>
__device__ inline Pack<T> load_pack(const T* address) {
  Pack<T> pack;
  *reinterpret_cast<uint4*>(&pack) = *reinterpret_cast<const uint4*>(address);
  return pack;
}
template <typename T>
__device__ inline void store_pack(T* address, const Pack<T>& pack) {
  // By CUDA's own function: the compiler takes an assignment apart into 4 bytes each, now and then.
  __stwb(reinterpret_cast<uint4*>(address), *reinterpret_cast<const uint4*>(&pack));
}

}  // namespace longhaul::cuda
