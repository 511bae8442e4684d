#include "schedule/block.hpp"

#include <fmt/format.h>

namespace longhaul {

std::string to_text(const Block& block) {
  std::string text = fmt::format("{}(chunk {}, microbatch {})", to_string(block.kind), block.chunk,
                                 block.microbatch);
  if (block.parts != 1) text += fmt::format(" part {}/{}", block.part, block.parts);
  return text;
}

}  // namespace longhaul
