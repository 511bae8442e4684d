#pragma once

#include <cstdint>
#include <string>

#include "base/ids.hpp"
#include "base/vocabulary.hpp"

namespace longhaul {

/// A unit of computation of one chunk for one microbatch, or part `part` of `parts` of it.
/// `chunk` is the global stage index in forward order.
///
///     const Block whole{.kind = BlockKind::D, .chunk = 3, .microbatch = 12};  // CSV: 3I12
///     const Block second{.kind = BlockKind::W, .part = 1, .parts = 4};  // CSV: 0W0.1/4
struct Block {
  BlockKind kind = BlockKind::F;
  std::uint8_t part = 0;
  std::uint8_t parts = 1;
  ChunkId chunk{};
  MicrobatchId microbatch{};

  friend auto operator<=>(const Block&, const Block&) = default;
};

/// For messages: "F(chunk 3, microbatch 5)", with " part 2/4" where split.
[[nodiscard]] std::string to_text(const Block& block);

}  // namespace longhaul
