#pragma once

#include <type_traits>

#include "nn/cuda/kernels/kernels.hpp"
#include "nn/cuda/kernels/numbers.cuh"

/// From a ArrayView's type to that of a kernel's template.
namespace longhaul::nn {

template <int kValue>
using Constant = std::integral_constant<int, kValue>;

template <typename T>
constexpr NumberType kTypeOf = std::is_same_v<std::remove_const_t<T>, Bf16>    ? NumberType::bf16
                               : std::is_same_v<std::remove_const_t<T>, float> ? NumberType::f32
                                                                               : NumberType::i32;

/// The view's numbers, which are of type T.
template <typename T>
[[nodiscard]] T* numbers(ArrayView view) {
  expect_type(view, kTypeOf<T>);
  return reinterpret_cast<T*>(view.data);
}

/// f(pointer) for what the view holds: bf16 or f32.
template <typename F>
void with_type(ArrayView view, F&& f) {
  if (view.type == NumberType::bf16) return f(numbers<Bf16>(view));
  return f(numbers<float>(view));
}

/// f(Constant<8>) where packs of 8 begin at multiples of 16 bytes, f(Constant<1>) where not.
template <typename F>
void with_vector(bool is_aligned, F&& f) {
  if (is_aligned) return f(Constant<8>{});
  return f(Constant<1>{});
}

/// Blocks of a launch for each_vector.
[[nodiscard]] inline unsigned vector_blocks(std::size_t count, int vector) {
  return cuda::blocks_for(count, static_cast<std::size_t>(kThreads * vector));
}

/// One vector of `count` numbers for each thread of the launch: f(Constant<kVector>, first number);
/// the last, shorter one number by number.
template <int kVector, typename F>
__device__ inline void each_vector(std::size_t count, F&& f) {
  const std::size_t first = thread_of_all() * kVector;
  if (first + kVector <= count) return f(Constant<kVector>{}, first);
  for (std::size_t i = first; i < count; ++i) f(Constant<1>{}, i);
}

}  // namespace longhaul::nn
