#pragma once

#include <cstdint>
#include <cstring>

#include <cuda_runtime.h>

/// In place of src/cuda/intrinsics.hpp, whose functions these are: see there.
namespace longhaul::cuda {

#define LONGHAUL_SHARED __shared__
#define LONGHAUL_DYNAMIC_SHARED(type, name) \
  type* const name = reinterpret_cast<type*>(::longhaul::on_host::dynamic_shared())

/// Kernels follow each other here; one that launch_prepared() starts fails if a thread does not
/// call.
inline void wait_for_kernel_before() { on_host::note_wait(); }

/// CLOCK_MONOTONIC; who asks again and again sleeps in between, so that kernels that spin leave the
/// cores to others.
[[nodiscard]] std::uint64_t global_timer();
void nanosleep(unsigned nanoseconds);

inline void store_for_system(std::uint64_t* where, std::uint64_t value) {
  std::atomic_ref<std::uint64_t>{*where}.store(value);
}
inline std::uint64_t load_of_system(const std::uint64_t* where) {
  return std::atomic_ref<std::uint64_t>{*const_cast<std::uint64_t*>(where)}.load();
}

template <typename T>
struct alignas(16) Pack {
  static constexpr int kCount = 16 / sizeof(T);
  T values[kCount];
};

/// A GPU fails where an address is no multiple of 16.
inline void expect_aligned(const void* address) {
  if (reinterpret_cast<std::uintptr_t>(address) % 16 != 0) __trap();
}
template <typename T>
Pack<T> load_pack(const T* address) {
  expect_aligned(address);
  Pack<T> pack;
  std::memcpy(&pack, address, sizeof pack);
  return pack;
}
template <typename T>
void store_pack(T* address, const Pack<T>& pack) {
  expect_aligned(address);
  std::memcpy(address, &pack, sizeof pack);
}

}  // namespace longhaul::cuda
