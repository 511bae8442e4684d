#include <algorithm>
#include <tuple>

#include "collective/overlap/rewrites.hpp"

namespace longhaul::collective {
namespace {

/// Of a block's backward its R comes first and its W last.
int place_of(BlockKind kind) {
  if (kind == BlockKind::R) return 0;
  return kind == BlockKind::W ? 2 : 1;
}

auto key_of(const Block& block) {
  const bool forward = block.kind == BlockKind::F;
  const int chunk = number(block.chunk);
  return std::tuple{!forward, forward ? chunk : -chunk, number(block.microbatch),
                    place_of(block.kind), block.part};
}

}  // namespace

Schedule breadth_first(Schedule schedule) {
  for (std::vector<Block>& row : schedule.rows) std::ranges::stable_sort(row, {}, key_of);
  return schedule;
}

}  // namespace longhaul::collective
