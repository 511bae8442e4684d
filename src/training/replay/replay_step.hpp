#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/listed_enum.hpp"
#include "training/replay/replay_set.hpp"

namespace longhaul::training {

#define LONGHAUL_STEP_KINDS(X) \
  X(sgd, "sgd") X(momentum, "momentum") X(nesterov, "nesterov") X(adamw, "adamw")
LONGHAUL_LISTED_ENUM(StepKind, LONGHAUL_STEP_KINDS);

/// Numbers that a sum does not have keep weight and moments as they are; or the steps that they
/// missed are played, with gradients of zero, before the next one that has them.
#define LONGHAUL_LAZY_STEPS(X) X(skip, "skip") X(exact, "exact")
LONGHAUL_LISTED_ENUM(LazySteps, LONGHAUL_LAZY_STEPS);

/// Steps as PyTorch has them, with decoupled decay.
struct StepRule {
  StepKind kind = StepKind::sgd;
  LazySteps lazy = LazySteps::skip;
  float learning_rate = 0.01F;
  float momentum = 0.9F;                                ///< of momentum and nesterov
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  ///< of AdamW
  float weight_decay = 0;                               ///< of AdamW
};

/// Throws Error where no run can have such steps: decays beyond 1, or of 1 with `exact`.
void check(const StepRule& rule);

/// Weights of one part, number by number: the formulas and no more.
class ReplayStepper {
public:
  /// With `exact`, all numbers are brought up to date after each so many steps.
  static constexpr std::int64_t kAllAfter = 16'384;

  /// Of `count` weights. Throws Error as check() does.
  ReplayStepper(const StepRule& rule, std::size_t count);

  /// The next step, with what a sum has.
  void step(std::span<float> weights, const ReplaySet& sum);
  /// `exact`: brings all weights to the last step.
  void catch_up(std::span<float> weights);

private:
  struct Factors {
    float rate;        ///< learning rate over the first bias correction
    float correction;  ///< 1 over the root of the second
    float kept;        ///< of the weight by its decay
  };
  [[nodiscard]] Factors factors(std::int64_t step) const;
  void move(float& weight, std::size_t number, float gradient, const Factors& now);
  void play_missed(float& weight, std::size_t number, std::int64_t up_to);

  StepRule rule_;
  std::int64_t steps_ = 0;
  std::vector<float> first_, second_;    ///< moments
  std::vector<std::int64_t> last_step_;  ///< that moved each number
};

}  // namespace longhaul::training
