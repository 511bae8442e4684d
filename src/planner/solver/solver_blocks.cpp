#include "planner/solver/solver_blocks.hpp"

#include <nlohmann/json.hpp>

#include "base/index.hpp"

namespace longhaul {

void ModelBlocks::add(const Block& block) {
  index_of_[block] = static_cast<int>(blocks_.size());
  blocks_.push_back(block);
}

int ModelBlocks::index_of(const Block& block) const {
  const auto found = index_of_.find(block);
  return found == index_of_.end() ? -1 : found->second;
}

/// The block that takes a gradient: the R that waits for it, or the D.
int ModelBlocks::taker_of_gradient(int chunk, int microbatch) const {
  const int recompute = index_of({BlockKind::R, 0, 1, chunk, microbatch});
  const bool waits = layout_.recompute_timing == RecomputeTiming::on_arrival;
  return recompute >= 0 && waits ? recompute : index_of({BlockKind::D, 0, 1, chunk, microbatch});
}

ModelBlocks::Taker ModelBlocks::taker(const Block& block) const {
  const auto device = [&](int chunk) { return layout_.device_of_chunk[at(chunk)]; };
  if (block.kind == BlockKind::F && !layout_.is_last(block.chunk))
    return {index_of({BlockKind::F, 0, 1, block.chunk + 1, block.microbatch}),
            device(block.chunk) != device(block.chunk + 1)};
  if (block.kind == BlockKind::D && !layout_.is_first(block.chunk))
    return {taker_of_gradient(block.chunk - 1, block.microbatch),
            device(block.chunk) != device(block.chunk - 1)};
  return {};
}

nlohmann::json dependencies_of(const ModelBlocks& blocks) {
  nlohmann::json after = nlohmann::json::array();
  for (std::size_t i = 0; i < blocks.all().size(); ++i) {
    const Block& block = blocks.all()[i];
    const auto needs = [&](BlockKind kind) {
      const int before = blocks.index_of({kind, 0, 1, block.chunk, block.microbatch});
      if (before >= 0) after.push_back({before, i});
    };
    if (block.kind == BlockKind::R || block.kind == BlockKind::D) needs(BlockKind::F);
    if (block.kind == BlockKind::D) needs(BlockKind::R);
    if (block.kind == BlockKind::W) needs(BlockKind::D);
    const ModelBlocks::Taker to = blocks.taker(block);
    if (to.block >= 0 && !to.remote) after.push_back({i, to.block});
  }
  return after;
}

}  // namespace longhaul
