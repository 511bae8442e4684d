#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace longhaul {

enum class ExchangeType : std::uint8_t { i64, f32, bf16 };
[[nodiscard]] constexpr std::size_t bytes_of(ExchangeType type) {
  return type == ExchangeType::i64 ? 8 : type == ExchangeType::f32 ? 4 : 2;
}
/// A rank's input and output of a collective. Both memories belong to the caller.
struct Exchange {
  ExchangeType type = ExchangeType::i64;
  std::span<const std::byte> mine;
  std::span<std::byte> result;
};

}  // namespace longhaul
