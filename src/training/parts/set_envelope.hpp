#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace longhaul::training {

/// Goes before a set: of which part of the model and iteration it is, and a sum over its bytes, by
/// which a receiver sees that it is the one, and whole.
struct SetEnvelope {
  std::int32_t part = -1, iteration = -1;
  std::uint64_t sum = 0;
};
static_assert(sizeof(SetEnvelope) == 16);

/// Of all bytes, eight at a time; another byte gives another sum.
[[nodiscard]] std::uint64_t sum_of_bytes(std::span<const std::byte> bytes);

/// A set in an envelope that says something of it, or in its own.
[[nodiscard]] std::vector<std::byte> sealed(const SetEnvelope& envelope,
                                            std::span<const std::byte> set);
[[nodiscard]] std::vector<std::byte> sealed(int part, int iteration,
                                            std::span<const std::byte> set);

/// nullopt: the bytes hold none.
[[nodiscard]] std::optional<SetEnvelope> envelope_of(std::span<const std::byte> sealed);

/// What is in it; nothing of bytes that hold no envelope.
[[nodiscard]] inline std::span<const std::byte> opened(std::span<const std::byte> sealed) {
  return sealed.size() < sizeof(SetEnvelope) ? std::span<const std::byte>{}
                                             : sealed.subspan(sizeof(SetEnvelope));
}

}  // namespace longhaul::training
