#include <algorithm>

#include "base/index.hpp"
#include "planner/orders/starts.hpp"

namespace longhaul::planner {
namespace {

/// Gives the blocks of a kind (D and B count as one) and chunk their microbatches in turn.
class Numbering {
public:
  explicit Numbering(const Schedule& schedule) : schedule_{schedule}, cells_(schedule.chunks) {
    for (const ChunkId c : cells_.ids()) {
      Cell& cell = cells_[c];
      cell.forward = cell.gradient = MicrobatchId{schedule.copy_of(c)};
    }
  }

  MicrobatchId next(const Block& block) {
    Cell& cell = cells_[block.chunk];
    const auto step = [this](MicrobatchId& microbatch) {
      const MicrobatchId now = microbatch;
      microbatch += schedule_.copies;
      return now;
    };
    if (block.kind == BlockKind::F) return step(cell.forward);
    if (block.kind == BlockKind::W) return cell.split[cell.taken++];
    const MicrobatchId microbatch = step(cell.gradient);
    if (block.kind == BlockKind::D) cell.split.push_back(microbatch);
    return microbatch;
  }

private:
  struct Cell {
    MicrobatchId forward{};
    MicrobatchId gradient{};
    std::vector<MicrobatchId> split;  ///< microbatches whose D has been, for their W
    std::size_t taken = 0;
  };
  const Schedule& schedule_;
  IndexedVector<ChunkId, Cell> cells_;
};

}  // namespace

Schedule whole_blocks(const Schedule& schedule) {
  Schedule whole = schedule;
  whole.rows.assign(at(schedule.devices), {});
  whole.link_orders.clear();
  whole.recompute_timing = RecomputeTiming::on_arrival;
  bool recomputes = false;
  for (const auto& row : schedule.rows)
    recomputes |= std::ranges::find(row, BlockKind::R, &Block::kind) != row.end();
  Numbering numbering{schedule};
  for (const DeviceId device : schedule.device_ids()) {
    for (const Block& block : schedule.row(ReplicaId{0}, device)) {
      if (block.part + 1 != block.parts || block.kind == BlockKind::R) continue;
      const MicrobatchId microbatch = numbering.next(block);
      auto& row = whole.rows[index(device)];
      if (recomputes && is_backward(block.kind))
        row.push_back({BlockKind::R, 0, 1, block.chunk, microbatch});
      row.push_back({block.kind, 0, 1, block.chunk, microbatch});
    }
  }
  return whole;
}

Schedule serial_schedule(const Schedule& like, bool recomputes) {
  Schedule serial = like;
  serial.link_orders.clear();
  for (const DeviceId device : like.device_ids()) {
    auto& row = serial.rows[index(device)];
    row.clear();
    const std::vector<ChunkId> mine = longhaul::chunks_on(like, device);
    for (MicrobatchId m{}; m < like.microbatches; ++m) {
      for (const ChunkId c : mine) {
        if (like.runs(c, m)) row.push_back({BlockKind::F, 0, 1, c, m});
      }
      for (std::size_t i = mine.size(); i-- > 0;) {
        if (!like.runs(mine[i], m)) continue;
        if (recomputes) row.push_back({BlockKind::R, 0, 1, mine[i], m});
        row.push_back({BlockKind::B, 0, 1, mine[i], m});
      }
    }
  }
  return serial;
}

}  // namespace longhaul::planner
