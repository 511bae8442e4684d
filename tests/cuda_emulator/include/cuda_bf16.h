#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "on_host/vector_types.hpp"

// bf16: the upper half of an f32, rounded to the nearest, ties to even; NaN becomes 0x7fff, as in
// CUDA (CUDA Math API, "Bfloat16 Precision Conversion").
struct __nv_bfloat16 {
  std::uint16_t bits;
  __nv_bfloat16() = default;
  __nv_bfloat16(float value);
  operator float() const;
};

inline __nv_bfloat16 __float2bfloat16_rn(float value) {
  __nv_bfloat16 result;
  if (std::isnan(value)) {
    result.bits = 0x7fff;
    return result;
  }
  const auto word = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = word + 0x7fffU + (word >> 16U & 1U);
  result.bits = static_cast<std::uint16_t>(rounded >> 16U);
  return result;
}
inline float __bfloat162float(__nv_bfloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16U);
}
inline __nv_bfloat16::__nv_bfloat16(float value) : bits{__float2bfloat16_rn(value).bits} {}
inline __nv_bfloat16::operator float() const { return __bfloat162float(*this); }
inline __nv_bfloat16 __float2bfloat16(float value) { return __float2bfloat16_rn(value); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  __nv_bfloat16 result;
  result.bits = bits;
  return result;
}

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 value) {
  return __floats2bfloat162_rn(value.x, value.y);
}
inline float2 __bfloat1622float2(__nv_bfloat162 value) {
  return {__bfloat162float(value.x), __bfloat162float(value.y)};
}
inline float __low2float(__nv_bfloat162 value) { return __bfloat162float(value.x); }
inline float __high2float(__nv_bfloat162 value) { return __bfloat162float(value.y); }
