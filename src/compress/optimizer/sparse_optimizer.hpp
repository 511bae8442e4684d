#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/large_pages.hpp"
#include "compress/optimizer/catch_up.hpp"
#include "compress/optimizer/optimizer_rows.hpp"
#include "compress/optimizer/optimizer_settings.hpp"
#include "compress/sparse_set.hpp"

namespace longhaul::compress {

/// Moments of one vector of weights; goes into checkpoints.
struct OptimizerState {
  LargeVector<float> first;              ///< momentum, or AdamW's first moment; empty of SGD
  LargeVector<float> second;             ///< of AdamW
  LargeVector<std::uint32_t> last_step;  ///< of each block; only where lazy is exact
};

/// Steps on sums of which only some blocks are there (StellaTrain, section 3.1): a step costs what
/// it touches.
class SparseOptimizer {
public:
  /// Of `count` weights in blocks of `block`. Throws Error where the settings cannot be.
  SparseOptimizer(const OptimizerSettings& settings, std::int64_t count, int block);

  /// Exact: the most steps whose sums are held, 152 bytes each. After so many a step catches up
  /// all weights, so that they can be forgotten.
  static constexpr std::int64_t kMostHeld = 16'384;

  /// One step with `scale` times the sum (1 / replicas, of a sum of gradients).
  void step(std::span<float> weights, const SparseSet& sum, float learning_rate, float scale = 1);
  /// Goes on after `steps` steps, all at one learning rate, with the state of then.
  void restore(OptimizerState state, std::int64_t steps, float learning_rate);
  /// Exact: brings every weight and moment to the last step, as dense steps would have. Nothing of
  /// skip.
  void catch_up(std::span<float> weights);

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Steps whose sums are held now; none of skip.
  [[nodiscard]] std::int64_t held() const { return skipped_.steps() - skipped_.forgotten(); }
  [[nodiscard]] const OptimizerState& state() const { return state_; }

private:
  [[nodiscard]] bool is_exact() const;

  OptimizerSettings settings_;
  std::int64_t count_;
  int block_;
  OptimizerState state_;
  std::int64_t steps_ = 0;
  CatchUp skipped_;  ///< of exact alone
  SkippedTable table_;
};

/// The same with all of a gradient, for any number of weights. `step` is its number, from 1 on.
void dense_step(const OptimizerSettings& settings, std::int64_t step, float learning_rate,
                std::span<float> weights, std::span<const float> gradient, OptimizerState& state);

/// Moments of `count` weights before the first step.
[[nodiscard]] OptimizerState fresh_state(const OptimizerSettings& settings, std::int64_t count,
                                         int block);

}  // namespace longhaul::compress
