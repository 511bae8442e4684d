#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "compress/optimizer/optimizer_settings.hpp"

namespace longhaul::compress {

/// What skipped steps, fed zeros, would have done to a number. `moved` and `moments` are of the
/// steps since the last that touched it.
struct SkippedSteps {
  static constexpr int kTerms = 6;
  float first_kept = 1;   ///< factor of the momentum, or of AdamW's first moment
  float second_kept = 1;  ///< of AdamW's second moment
  float weight_kept = 1;  ///< of the weight, by its decay
  float moved = 0;        ///< momentum: the weight moved by this times the momentum
  /// AdamW: with x the root of the second moment and y = x c / (x c + epsilon), the weight moved by
  /// the first moment times sum_p moments[p] (-y)^p / (x c + epsilon), c being `center`.
  std::array<float, kTerms> moments{};
  float center = 1;
  bool by_steps = false;  ///< the sum does not converge fast enough: play the steps one by one
  std::int64_t from = 0;  ///< the last step that touched it
  std::int64_t to = 0;    ///< the last that was skipped
};

/// Sums over skipped steps, kept up to date at a constant cost a step; then any number of skipped
/// steps costs a number the same. Momentum is a geometric sum. AdamW's steps at zero gradient are
/// rate_s beta1^j m / (x r_s + epsilon), r_s = sqrt(beta2^j / (1 - beta2^s)): no closed form, but
/// r_s changes little while beta1^j lasts, so that a series in r_s / c - 1 with six terms has an
/// error below 1e-7 (of the first few steps it has not: those are played one by one). 64 bytes a
/// step.
class CatchUp {
public:
  explicit CatchUp(const OptimizerSettings& settings);

  /// After each step, which had this learning rate.
  void add_step(float learning_rate);
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Of a number that step `last` touched (0: none did), at the end of the last step.
  [[nodiscard]] SkippedSteps since(std::int64_t last) const;
  /// Factors of one step that was taken.
  [[nodiscard]] AdamFactors factors(std::int64_t step) const;
  /// Steps after which a first moment has died away.
  [[nodiscard]] std::int64_t reach() const { return reach_; }

private:
  struct FromStep {
    std::array<double, SkippedSteps::kTerms> sums{};
    double remainder = 0;  ///< bound of what the series leaves out
  };
  void add_to(FromStep& from, std::int64_t last, double rate, double kept) const;
  [[nodiscard]] double spread(std::int64_t last, std::int64_t step) const;

  OptimizerSettings settings_;
  double first_decay_;
  std::int64_t reach_;
  std::int64_t steps_ = 0;
  std::vector<FromStep> from_;  ///< by the last step that touched a number
  std::vector<float> rates_;    ///< of step 1, 2, ...
  std::vector<double> kept_;    ///< weight after step 0, 1, ... by its decay alone
  std::vector<double> powers_;  ///< of the first decay
};

}  // namespace longhaul::compress
