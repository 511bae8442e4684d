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
/// error below 1e-7 (of the first few steps it has not: those are played one by one). 84 bytes a
/// step, until they are forgotten.
class CatchUp {
public:
  explicit CatchUp(const OptimizerSettings& settings);

  /// After each step, which had this learning rate.
  void add_step(float learning_rate);
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  /// Forgets the steps so far, which nothing may ask for again: every number is caught up.
  void forget();
  /// Before the first step that is held.
  [[nodiscard]] std::int64_t forgotten() const { return forgotten_; }
  /// Of a number that step `last` touched (0: none did), at the end of the last step.
  [[nodiscard]] SkippedSteps since(std::int64_t last) const;
  /// AdamW: factors of one step that was taken.
  [[nodiscard]] const AdamFactors& factors(std::int64_t step) const {
    return factors_[index_of(step - 1)];
  }
  /// Factor of a weight by its decay in the steps after `last`.
  [[nodiscard]] double weight_kept_since(std::int64_t last) const;
  /// Factor of the root of AdamW's second moment in a step without a gradient.
  [[nodiscard]] double root_kept() const { return root_kept_; }
  /// Steps after which a first moment has died away.
  [[nodiscard]] std::int64_t reach() const { return reach_; }

private:
  struct FromStep {
    std::array<double, SkippedSteps::kTerms> sums{};
    double remainder = 0;  ///< bound of what the series leaves out
  };
  /// A product of many factors: number x 2^exponent, the number from 0.5 to 1.
  struct Product {
    double number = 0.5;
    std::int64_t exponent = 1;
    void multiply(double factor);
  };
  static_assert(sizeof(FromStep) + sizeof(AdamFactors) + sizeof(Product) == 84);  // a step's
  [[nodiscard]] std::size_t index_of(std::int64_t step) const {
    return static_cast<std::size_t>(step - forgotten_);
  }
  void add_to(FromStep& from, std::int64_t last, double rate, double kept) const;
  [[nodiscard]] double spread(std::int64_t last, std::int64_t step) const;

  OptimizerSettings settings_;
  double first_decay_, root_kept_;
  std::int64_t reach_;
  std::int64_t steps_ = 0;
  std::int64_t forgotten_ = 0;
  std::vector<FromStep> from_;  ///< by the last step that touched a number, from `forgotten_` on
  std::vector<AdamFactors> factors_;  ///< AdamW: of the steps after
  std::vector<Product> kept_;  ///< weight after `forgotten_` and each step after, by its decay
  std::int64_t zeroed_ = 0;    ///< the last step whose decay left nothing, which `kept_` leaves out
  std::vector<double> powers_;  ///< of the first decay
};

}  // namespace longhaul::compress
