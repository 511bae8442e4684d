#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <source_location>
#include <type_traits>

#include "on_host/block.hpp"
#include "on_host/vector_types.hpp"

// CUDA's C++ for g++: what nvcc knows without a header. Threads of a block share one thread of the
// host, so that its thread-locals are what __shared__ is; what a block finds there is what the one
// before has left.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__
#define __shared__ static thread_local
#define __align__(bytes) alignas(bytes)
#define __launch_bounds__(...)
#define __constant__

extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;
constexpr int warpSize = 32;

inline void __syncthreads(std::source_location where = std::source_location::current()) {
  longhaul::on_host::barrier(where);
}
inline void __syncwarp(unsigned mask = ~0U,
                       std::source_location where = std::source_location::current()) {
  static_cast<void>(longhaul::on_host::exchange(mask, 0, where));
}
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
void __nanosleep(unsigned nanoseconds);
inline void __stwb(uint4* address, uint4 value) { *address = value; }
[[noreturn]] inline void __trap() { longhaul::on_host::trap(); }

namespace longhaul::on_host {

[[nodiscard]] inline int lane() {
  const unsigned number = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  return static_cast<int>(number % 32);
}

template <typename T>
T from_lane(unsigned mask, T value, int source, std::source_location where) {
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t word = 0;
  std::memcpy(&word, &value, sizeof value);
  const std::uint64_t* const all = exchange(mask, word, where);
  T result;
  std::memcpy(&result, &all[source], sizeof result);
  return result;
}

}  // namespace longhaul::on_host

// `width` (a power of two): lanes exchange within groups of so many.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              std::source_location where = std::source_location::current()) {
  const int lane = longhaul::on_host::lane();
  const int from = lane / width * width + (source & (width - 1));
  return longhaul::on_host::from_lane(mask, value, from, where);
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes, int width = 32,
                  std::source_location where = std::source_location::current()) {
  const int lane = longhaul::on_host::lane(), from = lane ^ lanes;
  const bool inside = from / width <= lane / width;
  return longhaul::on_host::from_lane(mask, value, inside ? from : lane, where);
}
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   std::source_location where = std::source_location::current()) {
  const int lane = longhaul::on_host::lane(), from = lane + static_cast<int>(delta);
  const bool inside = from < lane / width * width + width;
  return longhaul::on_host::from_lane(mask, value, inside ? from : lane, where);
}
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 std::source_location where = std::source_location::current()) {
  const int lane = longhaul::on_host::lane(), from = lane - static_cast<int>(delta);
  const bool inside = from >= lane / width * width;
  return longhaul::on_host::from_lane(mask, value, inside ? from : lane, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              std::source_location where = std::source_location::current()) {
  const std::uint64_t* const all = longhaul::on_host::exchange(mask, predicate != 0 ? 1 : 0, where);
  unsigned result = 0;
  for (unsigned i = 0; i < 32; ++i)
    if ((mask >> i & 1U) != 0 && all[i] != 0) result |= 1U << i;
  return result;
}
inline int __any_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) {
  return __ballot_sync(mask, predicate, where) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      std::source_location where = std::source_location::current()) {
  return __ballot_sync(mask, predicate == 0 ? 1 : 0, where) == 0 ? 1 : 0;
}

template <typename T>
T atomicAdd(T* where, std::type_identity_t<T> value) {
  return std::atomic_ref<T>{*where}.fetch_add(value);
}
template <typename T>
T atomicExch(T* where, std::type_identity_t<T> value) {
  return std::atomic_ref<T>{*where}.exchange(value);
}
template <typename T>
T atomicCAS(T* where, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  std::atomic_ref<T>{*where}.compare_exchange_strong(expected, value);
  return expected;
}
template <typename T>
T atomicMax(T* where, std::type_identity_t<T> value) {
  T seen = *where;
  while (seen < value && !std::atomic_ref<T>{*where}.compare_exchange_weak(seen, value)) {
  }
  return seen;
}
template <typename T>
T atomicMin(T* where, std::type_identity_t<T> value) {
  T seen = *where;
  while (value < seen && !std::atomic_ref<T>{*where}.compare_exchange_weak(seen, value)) {
  }
  return seen;
}

// Loads and stores with hints about caches.
template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
T __ldcg(const T* address) {
  return *address;
}
template <typename T>
void __stcs(T* address, T value) {
  *address = value;
}
template <typename T>
void __stcg(T* address, T value) {
  *address = value;
}

inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __sinf(float x) { return std::sin(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0F / x; }
inline float __frsqrt_rn(float x) { return 1.0F / std::sqrt(x); }
inline float __saturatef(float x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }
inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
inline long long min(long long a, long long b) { return a < b ? a : b; }
inline long long max(long long a, long long b) { return a < b ? b : a; }
inline unsigned long min(unsigned long a, unsigned long b) { return a < b ? a : b; }
inline unsigned long max(unsigned long a, unsigned long b) { return a < b ? b : a; }
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
