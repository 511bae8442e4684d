#include "planner/orders/orders.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::planner {
namespace {

using Kind = OrderProblem::Kind;

}  // namespace

Orders::Orders(const OrderProblem& problem, const Schedule& schedule)
    : problem_{&problem},
      rows_(problem.devices()),
      held_(problem.devices()),
      position_(at(problem.blocks() + 1), -1),
      fused_(at(problem.blocks() + 1)) {
  for (const DeviceId device : problem.device_ids()) {
    auto& row = rows_[device];
    for (const Block& block : schedule.rows[index(device)]) {
      if (block.kind == BlockKind::R) continue;
      const Kind kind = block.kind == BlockKind::F   ? Kind::F
                        : block.kind == BlockKind::W ? Kind::W
                                                     : Kind::G;
      row.push_back(problem.id(kind, block.chunk, block.microbatch));
      fused_[at(row.back())] = block.kind == BlockKind::B;
    }
    held_[device].resize(row.size());
    renew(device, 0, row.size());
  }
}

Schedule Orders::schedule(const Schedule& like) const {
  Schedule made = like;
  made.rows.assign(rows_.size(), {});
  made.link_orders.clear();
  made.recompute_timing = RecomputeTiming::on_arrival;
  for (const DeviceId device : rows_.ids()) {
    auto& row = made.rows[index(device)];
    for (const BlockId id : rows_[device]) {
      Block block{BlockKind::F, 0, 1, problem_->chunk_of(id), problem_->microbatch_of(id)};
      const Kind kind = problem_->kind_of(id);
      if (kind == Kind::G) {
        block.kind = BlockKind::R;
        if (problem_->recomputes()) row.push_back(block);
        block.kind = is_fused(id) ? BlockKind::B : BlockKind::D;
      }
      if (kind == Kind::W) block.kind = BlockKind::W;
      row.push_back(block);
    }
  }
  return made;
}

Orders::Effect Orders::effect(BlockId block, bool fused) const {
  const OrderProblem::OfChunk& chunk = problem_->chunk(problem_->chunk_of(block));
  switch (problem_->kind_of(block)) {
    case Kind::F: return {chunk.taken, chunk.freed[0]};
    case Kind::G: return {chunk.again, fused ? chunk.freed[3] : chunk.freed[1]};
    case Kind::W: return {0, chunk.freed[2]};
  }
  return {};
}

bool Orders::fits(const Change& change) const {
  const auto& held = held_[change.device];
  const std::int64_t limit = problem_->memory_limit(change.device);
  std::int64_t now = change.first > 0 ? held[at(change.first - 1)] : 0;
  for (const BlockId block : change.blocks) {
    const Effect e = effect(block, is_fused(block) != (block == change.flipped));
    now += e.taken;
    if (now > limit) return false;
    now -= e.freed;
  }
  return true;
}

void Orders::apply(Change& change) {
  auto& row = rows_[change.device];
  const auto begin = row.begin() + change.first;
  const std::size_t old_size = row.size();
  if (change.flipped >= 0) fused_[at(change.flipped)] ^= 1;
  if (change.count == static_cast<int>(change.blocks.size())) {
    std::swap_ranges(begin, begin + change.count, change.blocks.begin());
  } else {
    std::vector<BlockId> before(begin, begin + change.count);
    for (const BlockId block : before) position_[at(block)] = -1;
    row.erase(begin, begin + change.count);
    row.insert(row.begin() + change.first, change.blocks.begin(), change.blocks.end());
    change.count = static_cast<int>(change.blocks.size());
    change.blocks = std::move(before);
  }
  held_[change.device].resize(row.size());
  const bool moved = row.size() != old_size;
  renew(change.device, at(change.first), moved ? row.size() : at(change.first + change.count));
}

void Orders::renew(DeviceId device, std::size_t first, std::size_t last) {
  const auto& row = rows_[device];
  auto& held = held_[device];
  std::int64_t now = first > 0 ? held[first - 1] : 0;
  for (std::size_t i = first; i < last; ++i) {
    position_[at(row[i])] = static_cast<int>(i);
    const Effect e = effect(row[i], is_fused(row[i]));
    held[i] = now += e.taken - e.freed;
  }
}

}  // namespace longhaul::planner
