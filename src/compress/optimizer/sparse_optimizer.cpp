#include "compress/optimizer/sparse_optimizer.hpp"

#include <algorithm>
#include <utility>

#include "base/kept_share.hpp"

namespace longhaul::compress {
namespace {

StepRows rows_of(const OptimizerSettings& settings, std::int64_t step, float learning_rate,
                 std::span<float> weights, OptimizerState& state) {
  StepRows rows;
  rows.settings = settings;
  rows.learning_rate = learning_rate;
  if (settings.rule == OptimizerRule::adamw)
    rows.adam = adam_factors(settings, step, learning_rate);
  rows.weights = weights.data();
  rows.first = state.first.empty() ? nullptr : state.first.data();
  rows.second = state.second.empty() ? nullptr : state.second.data();
  return rows;
}

}  // namespace

OptimizerState fresh_state(const OptimizerSettings& settings, std::int64_t count, int block) {
  OptimizerState state;
  const auto size = static_cast<std::size_t>(count);
  if (settings.rule != OptimizerRule::sgd) state.first.resize(size);
  if (settings.rule == OptimizerRule::adamw) state.second.resize(size);
  if (settings.lazy == LazyUpdate::exact && settings.rule != OptimizerRule::sgd)
    state.last_step.resize(static_cast<std::size_t>(blocks_in(count, block)));
  return state;
}

SparseOptimizer::SparseOptimizer(const OptimizerSettings& settings, std::int64_t count, int block)
    : settings_{settings},
      count_{count},
      block_{block},
      state_{fresh_state(settings, count, block)},
      skipped_{(check(settings), settings)} {}

bool SparseOptimizer::is_exact() const { return !state_.last_step.empty(); }

void SparseOptimizer::step(std::span<float> weights, const SparseSet& sum, float learning_rate,
                           float scale) {
  LONGHAUL_ASSERT(static_cast<std::int64_t>(weights.size()) == count_ && sum.count == count_ &&
                      sum.block == block_,
                  "{} weights, a sum of {} in blocks of {}", weights.size(), sum.count, sum.block);
  StepRows rows = rows_of(settings_, steps_ + 1, learning_rate, weights, state_);
  rows.scale = scale;
  rows.skipped = &skipped_;
  if (is_exact()) {
    table_.start(skipped_);
    rows.last_step = state_.last_step.data();
    rows.table = &table_;
  }
  if (!sum.blocks.empty()) step_blocks(rows, sum);
  ++steps_;
  if (!is_exact()) return;
  skipped_.add_step(learning_rate);
  if (held() == kMostHeld) catch_up(weights);
}

/// What skipped steps do follows from their number and rate: it is summed up again.
void SparseOptimizer::restore(OptimizerState state, std::int64_t steps, float learning_rate) {
  LONGHAUL_ASSERT(steps_ == 0 && state.last_step.size() == state_.last_step.size(),
                  "{} steps were taken", steps_);
  state_ = std::move(state);
  steps_ = steps;
  if (!is_exact()) return;
  for (std::int64_t step = 0; step < steps; ++step) {
    skipped_.add_step(learning_rate);
    if (held() == kMostHeld) skipped_.forget();
  }
}

void SparseOptimizer::catch_up(std::span<float> weights) {
  if (!is_exact()) return;
  StepRows rows = rows_of(settings_, std::max<std::int64_t>(1, steps()), 0, weights, state_);
  rows.skipped = &skipped_;
  table_.start(skipped_);
  const auto now = static_cast<std::uint32_t>(steps());
  for (std::size_t block = 0; block < state_.last_step.size(); ++block) {
    const std::size_t place = block * static_cast<std::size_t>(block_);
    const std::size_t size = std::min(weights.size() - place, static_cast<std::size_t>(block_));
    catch_up_row(rows, place, size, table_.since(state_.last_step[block]));
    state_.last_step[block] = now;
  }
  skipped_.forget();
}

void dense_step(const OptimizerSettings& settings, std::int64_t step, float learning_rate,
                std::span<float> weights, std::span<const float> gradient, OptimizerState& state) {
  LONGHAUL_ASSERT(weights.size() == gradient.size(), "{} and {}", weights.size(), gradient.size());
  step_all(rows_of(settings, step, learning_rate, weights, state), gradient.data(), weights.size());
}

}  // namespace longhaul::compress
