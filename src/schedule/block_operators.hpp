#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/index.hpp"
#include "scenario/scenario.hpp"
#include "schedule/schedule.hpp"

namespace longhaul::schedule {

/// Consecutive operators of a model.
struct OperatorRange {
  std::size_t first = 0;
  std::size_t count = 0;
};
/// Those of each chunk, the same in every copy. Operators of layers go with these: a chunk has as
/// many layers as its device's share says. A list without layers is cut evenly
/// over the chunks of a copy, in its order. Where there are fewer than chunks, some have none.
[[nodiscard]] IndexedVector<ChunkId, OperatorRange> operators_of_chunks(const Schedule& schedule,
                                                                        const Scenario& scenario);

/// One operator of a block, before it is known how long the block takes.
struct BlockOperator {
  std::string name;  ///< of a B, whose dgrad and wgrad are operators of their own, "NAME.dgrad"
  int layer = -1;
  Duration time{};                ///< at speed 1
  int place = 0;                  ///< in the chunk's operators
  BlockKind work = BlockKind::F;  ///< of a B the dgrad is D and the wgrad is W
};
/// The operators of a block of one kind, in the order in which they run: F and R forward, D, W and
/// B backward. Those that have nothing to do in a D, W or B are left out, and collectives that have
/// nothing to do in any.
[[nodiscard]] std::vector<BlockOperator> block_operators(std::span<const Operator> of_chunk,
                                                         BlockKind kind);

/// What these take in sum.
[[nodiscard]] Duration sum_of(std::span<const Operator> of_chunk, BlockKind kind);

}  // namespace longhaul::schedule
