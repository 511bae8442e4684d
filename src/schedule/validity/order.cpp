#include <algorithm>

#include "base/index.hpp"
#include "schedule/validity/checks.hpp"

namespace longhaul::schedule::checks {
namespace {

using enum BlockKind;

/// Is a block the same one as `wanted`, whatever its part?
auto is_same(const Block& wanted) {
  return [wanted](const Block& block) {
    return block.kind == wanted.kind && block.chunk == wanted.chunk &&
           block.microbatch == wanted.microbatch;
  };
}

}  // namespace

std::optional<Violation> BlockCounts::missing(std::size_t row) const {
  const RowCells& census = rows_[row];
  std::size_t index = 0;
  for (const ChunkId chunk : chunks_on_[device_of(row)]) {
    for (MicrobatchId microbatch{schedule_.copy_of(chunk)}; microbatch < schedule_.microbatches;
         microbatch += schedule_.copies, ++index) {
      if (index == census.cells.size()) return std::nullopt;
      if (auto found = missing_of(row, census.cells[index], chunk, microbatch)) return found;
    }
  }
  return std::nullopt;
}

std::optional<Violation> BlockCounts::missing_of(std::size_t row, const Cell& cell, ChunkId chunk,
                                                 MicrobatchId microbatch) const {
  const auto text = [&](BlockKind kind) {
    return to_text(Block{.kind = kind, .chunk = chunk, .microbatch = microbatch});
  };
  const auto where = [&] { return device_text(schedule_, row); };
  const auto lacks = [&](BlockKind kind, const char* why) {
    return violation(ViolationKind::missing_block, "{} lacks {} ({}). Add it.", where(), text(kind),
                     why);
  };
  const bool split = cell.has(D) || cell.has(W);
  if (cell.has(B) && split) {
    const BlockKind other = cell.has(D) ? D : W;
    return violation(ViolationKind::repeated_block,
                     "{} has both {} and {} (B is D and W in one). Leave one of them out.", where(),
                     text(B), text(other));
  }
  if (!cell.has(F)) return lacks(F, "every chunk runs F for every microbatch");
  if (!split && !cell.has(B)) return lacks(B, "every microbatch needs B, or D and W");
  if (split && !cell.has(D)) return lacks(D, "its W is there");
  if (split && !cell.has(W)) return lacks(W, "its D is there");
  const bool recomputed = recomputed_[at(chunk)];
  if (recomputed && !cell.has(R)) return lacks(R, "the chunk recomputes other microbatches");
  for (const BlockKind kind : {F, B, D, W, R}) {
    if (cell.seen[slot(kind)] == cell.parts[slot(kind)]) continue;
    return violation(ViolationKind::missing_block, "{} has {} of the {} parts of {}. Add the rest.",
                     where(), cell.seen[slot(kind)], cell.parts[slot(kind)], text(kind));
  }
  return std::nullopt;
}

/// A block that `block` needs of its own device and that has not run: compares with those seen.
std::optional<Block> BlockCounts::unmet_need(std::size_t row, const Block& block) {
  const auto needs = [&](BlockKind kind, ChunkId chunk) -> std::optional<Block> {
    if (cell(row, chunk, block.microbatch).complete(kind)) return std::nullopt;
    return Block{.kind = kind, .chunk = chunk, .microbatch = block.microbatch};
  };
  const auto is_here = [&](ChunkId chunk) { return lies_on(device_of(row), chunk); };
  const auto needs_gradient = [&]() -> std::optional<Block> {
    const ChunkId next = longhaul::next(block.chunk);
    if (schedule_.is_last(block.chunk) || !is_here(next)) return std::nullopt;
    return needs(cell(row, next, block.microbatch).has(B) ? B : D, next);
  };
  switch (block.kind) {
    case F:
      if (schedule_.is_first(block.chunk) || !is_here(previous(block.chunk))) return std::nullopt;
      return needs(F, previous(block.chunk));
    case W: return needs(D, block.chunk);
    case R:
      if (auto need = needs(F, block.chunk)) return need;
      if (schedule_.recompute_timing == RecomputeTiming::ahead) return std::nullopt;
      return needs_gradient();
    case B:
    case D: break;
  }
  if (auto need = needs(F, block.chunk)) return need;
  if (recomputed_[at(block.chunk)]) {
    if (auto need = needs(R, block.chunk)) return need;
  }
  return needs_gradient();
}

int BlockCounts::part_wanted(Cell& cell, const Block& block) const {
  const int seen = cell.seen[slot(block.kind)];
  const auto bit = static_cast<std::uint8_t>(1U << slot(block.kind));
  const bool whole = schedule_.is_first(block.chunk) && schedule_.is_last(block.chunk);
  if (seen == 0 && whole && is_backward(block.kind) && block.part + 1 == block.parts)
    cell.down = static_cast<std::uint8_t>(cell.down | bit);
  return (cell.down & bit) != 0 ? block.parts - 1 - seen : seen;
}

Violation BlockCounts::part_violation(std::size_t row, std::size_t position, int wanted,
                                      bool again) const {
  const std::vector<Block>& blocks = schedule_.rows[row];
  const Block& block = blocks[position];
  const std::string where = device_text(schedule_, row);
  if (again) {
    return violation(ViolationKind::repeated_block,
                     "{} has {} once more at position {} (every part runs once).", where,
                     to_text(block), position);
  }
  const auto found = std::find_if(blocks.begin(), blocks.end(), [&](const Block& other) {
    return is_same(block)(other) && other.part == wanted;
  });
  if (found == blocks.end()) {
    return violation(ViolationKind::missing_block, "{} has {} at position {}, but not part {}.",
                     where, to_text(block), position, wanted);
  }
  return violation(ViolationKind::dependency,
                   "{} has {} at position {} in front of part {} at position {} (parts run in "
                   "turn). Reorder them.",
                   where, to_text(block), position, wanted, found - blocks.begin());
}

std::optional<Violation> BlockCounts::order(std::size_t row) {
  for (Cell& cell : rows_[row].cells) {
    std::fill_n(cell.seen, kKinds, std::uint8_t{0});
    cell.down = 0;
  }
  const std::vector<Block>& blocks = schedule_.rows[row];
  for (std::size_t position = 0; position < blocks.size(); ++position) {
    const Block& block = blocks[position];
    Cell& own = cell(row, block.chunk, block.microbatch);
    std::uint8_t& seen = own.seen[slot(block.kind)];
    const int wanted = part_wanted(own, block);
    const bool down = (own.down >> slot(block.kind) & 1U) != 0;
    if (block.part != wanted)
      return part_violation(row, position, wanted,
                            down ? block.part > wanted : block.part < wanted);
    if (const auto need = unmet_need(row, block)) {
      const auto last_part = std::find_if(blocks.rbegin(), blocks.rend(), is_same(*need));
      return violation(ViolationKind::dependency,
                       "{} has {} at position {}, but {}, which it needs, stands at position {}. "
                       "Reorder them.",
                       device_text(schedule_, row), to_text(block), position, to_text(*need),
                       blocks.rend() - last_part - 1);
    }
    ++seen;
  }
  return std::nullopt;
}

}  // namespace longhaul::schedule::checks
