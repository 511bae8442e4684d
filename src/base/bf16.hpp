#pragma once

#include <bit>
#include <cstdint>

namespace longhaul {

/// The number that 16 bits of bf16 stand for: the upper half of an fp32.
[[nodiscard]] inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

/// Rounded to nearest, ties to even; what is no number stays none.
[[nodiscard]] inline std::uint16_t to_bf16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if (number != number) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

}  // namespace longhaul
