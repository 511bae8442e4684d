#pragma once

#include <cstdint>

#include "base/listed_enum.hpp"

namespace longhaul::compress {

#define LONGHAUL_OPTIMIZER_RULES(X) \
  X(sgd, "sgd") X(momentum, "momentum") X(nesterov, "nesterov") X(adamw, "adamw")
LONGHAUL_LISTED_ENUM(OptimizerRule, LONGHAUL_OPTIMIZER_RULES);

/// Numbers that a step does not touch keep their moments as they are (StellaTrain, section 3.1), or
/// are later caught up as if zeros had been fed to a dense optimizer.
#define LONGHAUL_LAZY_UPDATES(X) X(skip, "skip") X(exact, "exact")
LONGHAUL_LISTED_ENUM(LazyUpdate, LONGHAUL_LAZY_UPDATES);

/// Rules as PyTorch has them: momentum m = mu m + g, w -= rate m; Nesterov w -= rate (g + mu m);
/// AdamW with both bias corrections by the number of steps and decoupled weight decay.
struct OptimizerSettings {
  OptimizerRule rule = OptimizerRule::momentum;
  LazyUpdate lazy = LazyUpdate::skip;
  float momentum = 0.9F;
  float beta1 = 0.9F, beta2 = 0.999F, epsilon = 1e-8F;  ///< of AdamW
  float weight_decay = 0;                               ///< of AdamW
};

/// Throws Error where they cannot be: `exact` needs decays below 1, or what is caught up never
/// ends.
void check(const OptimizerSettings& settings);

/// One step of AdamW at number `step` (from 1 on): factors that do not depend on the number.
struct AdamFactors {
  float rate;        ///< learning rate over the first bias correction
  float correction;  ///< 1 over the square root of the second
  float kept;        ///< of the weight: 1 - learning rate x weight decay
};
[[nodiscard]] AdamFactors adam_factors(const OptimizerSettings& settings, std::int64_t step,
                                       float learning_rate);

}  // namespace longhaul::compress
