#pragma once

#include <cstdint>
#include <string>

#include "base/vocabulary.hpp"

namespace longhaul {

/// A unit of computation of one chunk for one microbatch, or part `part` of `parts` of it.
/// `chunk` is the global stage index in forward order.
struct Block {
  BlockKind kind = BlockKind::F;
  std::uint8_t part = 0;
  std::uint8_t parts = 1;
  std::int32_t chunk = 0;
  std::int32_t microbatch = 0;

  friend auto operator<=>(const Block&, const Block&) = default;
};

/// For messages: "F(chunk 3, microbatch 5)", with " part 2/4" where split.
[[nodiscard]] std::string to_text(const Block& block);

}  // namespace longhaul
