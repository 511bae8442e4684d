#include "sim/events/block_progress.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::sim {

BlockProgress::BlockProgress(const Plan& plan)
    : overlap_{plan.extras.overlap}, rates_{overlap_}, ranks_(plan.ranks.size()) {}

void BlockProgress::set_due(Block& block, Parts rate) {
  block.running.due = block.since + plan::SlowRates::time_for(block.left, rate);
}

Duration BlockProgress::begin(Rank rank, std::uint32_t instance, Duration work, Duration now) {
  RankState& state = ranks_[index(rank)];
  Block& block = state.blocks.emplace_back();
  block.running.instance = instance;
  block.left = rates_.parts_of(work);
  block.since = now;
  set_due(block, rates_.rate(state.holds));
  return block.running.due;
}

bool BlockProgress::is_due(Rank rank, std::uint32_t instance, Duration now) const {
  return std::ranges::any_of(ranks_[index(rank)].blocks, [&](const Block& block) {
    return block.running.instance == instance && block.running.due == now;
  });
}

bool BlockProgress::end(Rank rank, std::uint32_t instance, Duration now) {
  if (!is_due(rank, instance, now)) return false;
  std::erase_if(ranks_[index(rank)].blocks,
                [&](const Block& block) { return block.running.instance == instance; });
  return true;
}

std::vector<BlockProgress::Running> BlockProgress::change(Rank rank, NetworkLevel level, int by,
                                                          Duration now) {
  RankState& state = ranks_[index(rank)];
  const Parts before = rates_.rate(state.holds);
  state.holds[static_cast<std::size_t>(level)] += by;
  const Parts rate = rates_.rate(state.holds);
  std::vector<Running> moved;
  if (rate == before) return moved;
  for (Block& block : state.blocks) {
    block.left -= before * (now - block.since).count();
    block.since = now;
    set_due(block, rate);
    moved.push_back(block.running);
  }
  return moved;
}

}  // namespace longhaul::sim
