#include <map>
#include <span>

#include "base/index.hpp"
#include "planner/solver/solver_problem.hpp"

namespace longhaul::planner {
namespace {

/// Whole blocks: F and R where their first part stands, the others where their last one does. A
/// block still comes after those parts of a split one that it needs.
std::vector<Block> whole(std::span<const Block> row, const schedule::BlockCosts& costs, bool fuse) {
  std::vector<Block> blocks;
  for (const Block& block : row) {
    const bool early = block.kind == BlockKind::F || block.kind == BlockKind::R;
    if (block.part != (early ? 0 : block.parts - 1)) continue;
    const auto add = [&](BlockKind kind) {
      blocks.push_back({kind, 0, 1, block.chunk, block.microbatch});
    };
    const bool split =
        block.kind == BlockKind::B && !(fuse && fusing_saves_time(costs, block.chunk));
    add(split ? BlockKind::D : block.kind);
    if (split) add(BlockKind::W);
  }
  return blocks;
}

/// The k-th block of a kind and chunk becomes that of the chunk's k-th microbatch; the k-th W that
/// of its k-th D.
void order_microbatches(const Schedule& schedule, std::vector<Block>& row) {
  std::map<std::pair<BlockKind, ChunkId>, int> seen;
  std::map<ChunkId, std::vector<MicrobatchId>> gradients;  // of the Ds
  for (Block& block : row) {
    const BlockKind kind = is_backward(block.kind) ? BlockKind::D : block.kind;
    const int k = seen[{kind, block.chunk}]++;
    if (kind == BlockKind::W) {
      block.microbatch = gradients[block.chunk][at(k)];
      continue;
    }
    block.microbatch = MicrobatchId{schedule.copy_of(block.chunk) + k * schedule.copies};
    if (block.kind == BlockKind::D) gradients[block.chunk].push_back(block.microbatch);
  }
}

}  // namespace

bool fusing_saves_time(const schedule::BlockCosts& costs, ChunkId chunk) {
  const auto time = [&](BlockKind kind) {
    return costs.duration({kind, 0, 1, chunk, MicrobatchId{}});
  };
  return time(BlockKind::B) < time(BlockKind::D) + time(BlockKind::W);
}

Schedule in_model(const Schedule& schedule, const Scenario& scenario,
                  const SolverOptions& options) {
  const schedule::BlockCosts costs{schedule, scenario};
  Schedule start = schedule;
  start.link_orders.clear();
  start.rows.resize(at(schedule.devices));
  for (const DeviceId device : schedule.device_ids()) {
    std::vector<Block>& row = start.rows[index(device)];
    row = whole(schedule.row(ReplicaId{0}, device), costs, options.fuse);
    if (options.microbatch_order) order_microbatches(schedule, row);
  }
  return start;
}

}  // namespace longhaul::planner
