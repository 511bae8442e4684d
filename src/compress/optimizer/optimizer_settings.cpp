#include "compress/optimizer/optimizer_settings.hpp"

#include <cmath>

#include "base/error.hpp"

namespace longhaul::compress {
namespace {

void require_decay(const char* name, float value, LazyUpdate lazy) {
  if (!(value >= 0 && value <= 1))
    fail("{} is {} (what is left of a moment after a step). Give one from 0 to 1.", name, value);
  if (value == 1 && lazy == LazyUpdate::exact)
    fail(
        "{} is 1 and lazy is exact (a moment that never decays cannot be caught up). Give one "
        "below 1, or take skip.",
        name);
}

}  // namespace

void check(const OptimizerSettings& settings) {
  const bool has_momentum =
      settings.rule == OptimizerRule::momentum || settings.rule == OptimizerRule::nesterov;
  if (has_momentum) require_decay("momentum", settings.momentum, settings.lazy);
  if (settings.rule != OptimizerRule::adamw) return;
  require_decay("beta1", settings.beta1, settings.lazy);
  require_decay("beta2", settings.beta2, settings.lazy);
  if (settings.beta1 == 1 || settings.beta2 == 1)
    fail("beta1 is {} and beta2 {} (bias corrections divide by 1 less them). Give less than 1.",
         settings.beta1, settings.beta2);
  if (!(settings.epsilon > 0))
    fail("epsilon is {} (it keeps a division finite). Give one above 0.", settings.epsilon);
  if (!(settings.weight_decay >= 0))
    fail("weight decay is {}. Give one from 0 on.", settings.weight_decay);
}

AdamFactors adam_factors(const OptimizerSettings& settings, std::int64_t step,
                         float learning_rate) {
  const auto n = static_cast<double>(step);
  const double first = 1 - std::pow(static_cast<double>(settings.beta1), n);
  const double second = 1 - std::pow(static_cast<double>(settings.beta2), n);
  return {static_cast<float>(static_cast<double>(learning_rate) / first),
          static_cast<float>(1 / std::sqrt(second)), 1 - learning_rate * settings.weight_decay};
}

}  // namespace longhaul::compress
