#include "schedule/block.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace longhaul {

const char* name_of(BlockKind kind) {
  switch (kind) {
    case BlockKind::F: return "F";
    case BlockKind::B: return "B";
    case BlockKind::D: return "D";
    case BlockKind::W: return "W";
    case BlockKind::R: return "R";
  }
  LONGHAUL_ASSERT(false, "kind {}", static_cast<int>(kind));
  return "?";
}

std::string to_text(const Block& block) {
  std::string text = fmt::format("{}(chunk {}, microbatch {})", name_of(block.kind), block.chunk,
                                 block.microbatch);
  if (block.parts != 1) text += fmt::format(" part {}/{}", block.part, block.parts);
  return text;
}

}  // namespace longhaul
