#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace longhaul::fuzz {

/// Decisions taken from the bytes of an input, in order; zeros once they have run out. What one
/// decision takes does not depend on the others, so that a small change of the bytes is a small
/// change of what they mean.
class Input {
public:
  explicit Input(std::string_view bytes) : bytes_{bytes} {}

  [[nodiscard]] bool at_end() const { return bytes_.empty(); }
  std::uint8_t byte() {
    if (bytes_.empty()) return 0;
    const auto taken = static_cast<std::uint8_t>(bytes_.front());
    bytes_.remove_prefix(1);
    return taken;
  }
  /// From 0 to `count` - 1.
  std::size_t below(std::size_t count) { return byte() % count; }
  /// A small number, one at an edge of a type, or any.
  std::int64_t number() {
    constexpr std::array<std::int64_t, 16> kEdges{
        INT64_MIN, INT64_MIN + 1, INT32_MIN, -1,        0,         254,       255, 256,
        65'535,    65'536,        INT32_MAX, 1LL << 32, 1LL << 53, 1LL << 62, -2,  INT64_MAX};
    const std::uint8_t sort = byte();
    if (sort < 128) return sort;
    if (sort < 224) return kEdges[sort % kEdges.size()];
    std::int64_t any = 0;
    for (int i = 0; i < 8; ++i)
      any = static_cast<std::int64_t>(static_cast<std::uint64_t>(any) << 8U | byte());
    return any;
  }
  std::string_view text(std::size_t most) {
    const std::size_t length = std::min<std::size_t>(byte(), most);
    const std::string_view taken = bytes_.substr(0, length);
    bytes_.remove_prefix(taken.size());
    return taken;
  }

private:
  std::string_view bytes_;
};

}  // namespace longhaul::fuzz
