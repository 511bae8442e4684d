#include "planner/orders/moves.hpp"

#include <algorithm>

#include "base/index.hpp"

namespace longhaul::planner {
namespace {

using Kind = OrderProblem::Kind;

/// How far after its D a new W is put at most.
constexpr int kFarthestW = 12;

}  // namespace

bool Moves::shift(BlockId block, int steps, Change& change) const {
  const OrderProblem& problem = orders_.problem();
  change.device = problem.device_of(block);
  change.flipped = -1;
  const auto row = orders_.row(change.device);
  const int from = orders_.position(block);
  int to = from;
  const int size = static_cast<int>(row.size());
  const auto block_at = [&](int position) { return row[at(position)]; };
  if (steps < 0) {
    while (to > 0 && from - to < -steps && !problem.must_precede(block_at(to - 1), block)) --to;
  } else {
    while (to + 1 < size && to - from < steps && !problem.must_precede(block, block_at(to + 1)))
      ++to;
  }
  if (to == from) return false;
  change.first = std::min(from, to);
  change.count = std::abs(to - from) + 1;
  const auto begin = row.begin() + change.first;
  change.blocks.assign(begin, begin + change.count);
  if (to < from) {
    std::rotate(change.blocks.begin(), change.blocks.end() - 1, change.blocks.end());
  } else {
    std::rotate(change.blocks.begin(), change.blocks.begin() + 1, change.blocks.end());
  }
  return true;
}

// The W's of a chunk keep the order of their microbatches. Where one is taken out or put in,
// the others pass their microbatches on.

bool Moves::fuse(BlockId gradient, Random& random, Change& change) const {
  const OrderProblem& problem = orders_.problem();
  const ChunkId chunk = problem.chunk_of(gradient);
  change.device = problem.device_of(gradient);
  change.flipped = gradient;
  const auto row = orders_.row(change.device);
  change.first = orders_.position(gradient);
  const int last = orders_.position(problem.id(Kind::W, chunk, problem.microbatch_of(gradient)));
  change.count = last - change.first + 1;
  const auto begin = row.begin() + change.first;
  const auto end = begin + change.count;
  const auto is_weight = [&](BlockId b) {
    return problem.kind_of(b) == Kind::W && problem.chunk_of(b) == chunk;
  };
  std::int64_t leaving = random.between(0, std::count_if(begin, end, is_weight) - 1);
  change.blocks.clear();
  BlockId passed = -1;
  for (auto b = begin; b != end; ++b) {
    if (!is_weight(*b)) {
      change.blocks.push_back(*b);
    } else if (leaving-- > 0) {
      change.blocks.push_back(*b);
    } else {
      if (passed >= 0) change.blocks.push_back(passed);
      passed = *b;
    }
  }
  return true;
}

bool Moves::split(BlockId gradient, Random& random, Change& change) const {
  const OrderProblem& problem = orders_.problem();
  const ChunkId chunk = problem.chunk_of(gradient);
  const BlockId weight = problem.id(Kind::W, chunk, problem.microbatch_of(gradient));
  change.device = problem.device_of(gradient);
  change.flipped = gradient;
  const auto row = orders_.row(change.device);
  change.first = orders_.position(gradient);
  const auto begin = row.begin() + change.first;
  const auto is_earlier_weight = [&](BlockId b) {
    return problem.kind_of(b) == Kind::W && problem.chunk_of(b) == chunk && b < weight;
  };
  const auto farthest = std::min<std::int64_t>(kFarthestW, row.end() - begin - 1);
  const auto place = begin + 1 + random.between(0, farthest);
  auto end = place;
  for (auto b = place; b != row.end(); ++b) {
    if (is_earlier_weight(*b)) end = b + 1;
  }
  change.count = static_cast<int>(end - begin);
  change.blocks.assign(begin, place);
  // A later W before the new one would break their order: the new one takes its place.
  BlockId carried = weight;
  for (BlockId& b : change.blocks) {
    if (problem.kind_of(b) == Kind::W && problem.chunk_of(b) == chunk && b > carried)
      std::swap(b, carried);
  }
  const std::size_t at = change.blocks.size();
  change.blocks.push_back(carried);
  std::size_t slot = at;
  for (auto b = place; b != end; ++b) {
    change.blocks.push_back(*b);
    if (!is_earlier_weight(*b)) continue;
    std::swap(change.blocks[slot], change.blocks.back());
    slot = change.blocks.size() - 1;
  }
  return true;
}

}  // namespace longhaul::planner
