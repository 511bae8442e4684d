#include <algorithm>

#include "base/error.hpp"
#include "base/index.hpp"
#include "schedule/validity/checks.hpp"

namespace longhaul::schedule::checks {
BlockCounts::BlockCounts(const Schedule& schedule)
    : schedule_{schedule},
      chunks_on_(schedule.devices),
      recomputed_(to_size(schedule.chunks)),
      rows_(schedule.rows.size()) {
  IndexedVector<DeviceId, std::int64_t> cells(schedule.devices);
  for (ChunkId chunk{}; chunk < schedule.chunks; ++chunk) {
    const DeviceId device = schedule.device_of_chunk[chunk];
    chunks_on_[device].push_back(chunk);
    first_cell_.push_back(cells[device]);
    cells[device] += schedule.microbatches_of(chunk);
  }
  for (std::size_t row = 0; row < rows_.size(); ++row) {
    rows_[row].wanted = cells[device_of(row)];
    // With fewer blocks than cells some block among the first `blocks + 1` cells is missing.
    const auto blocks = static_cast<std::int64_t>(schedule.rows[row].size());
    rows_[row].cells.resize(to_size(std::min(rows_[row].wanted, blocks + 1)));
  }
}

std::int64_t BlockCounts::cell_index(const Block& block) const {
  return first_cell_[at(block.chunk)] + block.microbatch / schedule_.copies;
}

BlockCounts::Cell& BlockCounts::cell(std::size_t row, ChunkId chunk, MicrobatchId microbatch) {
  const Block block{.chunk = chunk, .microbatch = microbatch};
  return rows_[row].cells[at(cell_index(block))];
}

std::optional<Violation> BlockCounts::range_violation(std::size_t row, std::size_t position) const {
  const Block& block = schedule_.rows[row][position];
  const bool known = block.chunk >= 0 && block.chunk < schedule_.chunks && block.microbatch >= 0 &&
                     block.microbatch < schedule_.microbatches;
  const bool fine = slot(block.kind) < kKinds && block.part < block.parts && known &&
                    lies_on(device_of(row), block.chunk) &&
                    schedule_.runs(block.chunk, block.microbatch);
  if (fine) return std::nullopt;
  const std::string where = device_text(schedule_, row);
  if (slot(block.kind) >= kKinds) {
    return violation(ViolationKind::shape, "{} has a block of unknown kind {} at position {}.",
                     where, slot(block.kind), position);
  }
  if (block.part >= block.parts) {
    return violation(ViolationKind::shape,
                     "{} has {} of microbatch {} at position {} as part {} of {} (parts count "
                     "from 0).",
                     where, longhaul::to_string(block.kind), block.microbatch, position, block.part,
                     block.parts);
  }
  if (!known) {
    return violation(ViolationKind::shape,
                     "{} has {} at position {}, but the schedule has chunks 0 to {} and "
                     "microbatches 0 to {}.",
                     where, to_text(block), position, schedule_.chunks - 1,
                     schedule_.microbatches - 1);
  }
  if (!schedule_.runs(block.chunk, block.microbatch)) {
    const int copy = block.microbatch % schedule_.copies;
    const int first = copy * schedule_.chunks_of_copy();
    return violation(ViolationKind::shape,
                     "{} has {} at position {}, but the microbatch runs in copy {} of the model, "
                     "chunks {} to {}. Name a chunk of that copy.",
                     where, to_text(block), position, copy, first,
                     first + schedule_.chunks_of_copy() - 1);
  }
  return violation(ViolationKind::shape,
                   "{} has {} at position {}, but chunk {} lies on device {}. Move the block "
                   "there.",
                   where, to_text(block), position, block.chunk,
                   schedule_.device_of_chunk[block.chunk]);
}

std::optional<Violation> BlockCounts::count(std::size_t row) {
  RowCells& census = rows_[row];
  const std::vector<Block>& blocks = schedule_.rows[row];
  for (std::size_t position = 0; position < blocks.size(); ++position) {
    if (auto wrong = range_violation(row, position)) return wrong;
    const Block& block = blocks[position];
    if (block.kind == BlockKind::R) recomputed_[at(block.chunk)] = true;
    const std::int64_t index = cell_index(block);
    if (index >= static_cast<std::int64_t>(census.cells.size())) continue;
    Cell& cell = census.cells[at(index)];
    std::uint8_t& parts = cell.parts[slot(block.kind)];
    if (parts != 0 && parts != block.parts) {
      return violation(ViolationKind::shape,
                       "{} has {} at position {}, which an earlier block splits into {} parts.",
                       device_text(schedule_, row), to_text(block), position, parts);
    }
    parts = block.parts;
    if (cell.complete(block.kind)) {
      return violation(ViolationKind::repeated_block,
                       "{} has {} once more at position {} (every block runs once). Leave it out.",
                       device_text(schedule_, row), to_text(block), position);
    }
    ++cell.seen[slot(block.kind)];
  }
  return std::nullopt;
}

}  // namespace longhaul::schedule::checks
