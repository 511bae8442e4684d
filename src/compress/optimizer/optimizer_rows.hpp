#pragma once

#include <cstdint>
#include <vector>

#include "compress/optimizer/catch_up.hpp"
#include "compress/sparse_set.hpp"

namespace longhaul::compress {

/// What was skipped since each step, computed when it is first asked for after a step. 68 bytes a
/// step that is held.
class SkippedTable {
public:
  /// Forgets what it holds: a step was taken.
  void start(const CatchUp& skipped);
  [[nodiscard]] const SkippedSteps& since(std::uint32_t last) {
    const std::uint32_t at = last - first_;
    return stamps_[at] == now_ ? entries_[at] : computed(last);
  }

private:
  const SkippedSteps& computed(std::uint32_t last);

  const CatchUp* skipped_ = nullptr;
  static_assert(sizeof(SkippedSteps) + sizeof(std::uint32_t) == 68);
  std::uint32_t now_ = 0;
  std::uint32_t first_ = 0;            ///< the first step that is held
  std::vector<std::uint32_t> stamps_;  ///< by step, from the first on
  std::vector<SkippedSteps> entries_;
};

/// One step: where the weights and moments are, and the factors.
struct StepRows {
  OptimizerSettings settings;
  AdamFactors adam{};
  float learning_rate = 0;
  float scale = 1;
  float* weights = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  std::uint32_t* last_step = nullptr;  ///< null: nothing is caught up
  const CatchUp* skipped = nullptr;
  SkippedTable* table = nullptr;
};

/// Steps the blocks of a set, each caught up before where that is asked for.
void step_blocks(const StepRows& rows, const SparseSet& sum);
/// Steps `count` weights with a dense gradient.
void step_all(const StepRows& rows, const float* gradient, std::size_t count);
/// Catches up the block at `place`, of `size` numbers, without a step.
void catch_up_row(const StepRows& rows, std::size_t place, std::size_t size,
                  const SkippedSteps& skipped);

}  // namespace longhaul::compress
