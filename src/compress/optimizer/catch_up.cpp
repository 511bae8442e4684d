#include "compress/optimizer/catch_up.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace longhaul::compress {
namespace {

constexpr double kDiedAway = 1e-10;
/// The step after the last whose r is the center of the series.
constexpr std::int64_t kCenter = 6;
constexpr double kLargestRemainder = 1e-7;

double first_decay_of(const OptimizerSettings& settings) {
  switch (settings.rule) {
    case OptimizerRule::sgd: return 0;
    case OptimizerRule::momentum:
    case OptimizerRule::nesterov: return static_cast<double>(settings.momentum);
    case OptimizerRule::adamw: break;
  }
  return static_cast<double>(settings.beta1);
}

std::int64_t reach_of(double decay) {
  if (decay <= 0) return 1;
  return static_cast<std::int64_t>(std::ceil(std::log(kDiedAway) / std::log(decay))) + 1;
}

}  // namespace

CatchUp::CatchUp(const OptimizerSettings& settings)
    : settings_{settings},
      first_decay_{first_decay_of(settings)},
      reach_{reach_of(first_decay_)},
      from_(1),
      kept_(1, 1.0) {
  powers_.resize(static_cast<std::size_t>(reach_) + 1, 1.0);
  for (std::size_t i = 1; i < powers_.size(); ++i) powers_[i] = powers_[i - 1] * first_decay_;
}

/// r at `step`, of a number that was touched at `last`, over r of the center.
double CatchUp::spread(std::int64_t last, std::int64_t step) const {
  const auto beta = static_cast<double>(settings_.beta2);
  const auto r = [&](std::int64_t at) {
    return std::sqrt(std::pow(beta, static_cast<double>(at - last)) /
                     (1 - std::pow(beta, static_cast<double>(at))));
  };
  return r(step) / r(last + kCenter);
}

void CatchUp::add_to(FromStep& from, std::int64_t last, double rate, double kept) const {
  const std::int64_t skipped = steps_ - last;
  double term = rate * powers_[static_cast<std::size_t>(skipped)];
  if (settings_.rule != OptimizerRule::adamw) {
    const bool nesterov = settings_.rule == OptimizerRule::nesterov;
    from.sums[0] += nesterov ? term * first_decay_ : term;
    return;
  }
  const double off = spread(last, steps_) - 1;
  const double whole = term;
  for (double& sum : from.sums) {
    sum = sum * kept + term;
    term *= off;
  }
  from.remainder += std::fabs(off) < 0.5 ? std::fabs(term) : whole;
}

void CatchUp::add_step(float learning_rate) {
  ++steps_;
  rates_.push_back(learning_rate);
  const bool adam = settings_.rule == OptimizerRule::adamw;
  const double rate = static_cast<double>(adam ? adam_factors(settings_, steps_, learning_rate).rate
                                               : learning_rate);
  const double kept = adam ? static_cast<double>(1 - learning_rate * settings_.weight_decay) : 1.0;
  kept_.push_back(kept_.back() * kept);
  for (std::int64_t last = std::max<std::int64_t>(0, steps_ - reach_); last < steps_; ++last)
    add_to(from_[static_cast<std::size_t>(last)], last, rate, kept);
  from_.emplace_back();
}

SkippedSteps CatchUp::since(std::int64_t last) const {
  LONGHAUL_ASSERT(last >= 0 && last <= steps_, "step {} of {}", last, steps_);
  SkippedSteps skipped;
  skipped.from = last;
  skipped.to = steps_;
  const std::int64_t count = steps_ - last;
  if (count == 0) return skipped;
  const FromStep& from = from_[static_cast<std::size_t>(last)];
  skipped.first_kept = count < static_cast<std::int64_t>(powers_.size())
                           ? static_cast<float>(powers_[static_cast<std::size_t>(count)])
                           : 0;
  if (settings_.rule != OptimizerRule::adamw) {
    skipped.moved = static_cast<float>(from.sums[0]);
    return skipped;
  }
  const auto beta2 = static_cast<double>(settings_.beta2);
  skipped.second_kept = static_cast<float>(std::pow(beta2, static_cast<double>(count)));
  const auto kept_at = [&](std::int64_t step) { return kept_[static_cast<std::size_t>(step)]; };
  skipped.weight_kept = static_cast<float>(kept_at(steps_) / kept_at(last));
  const double later = kept_at(steps_) / kept_at(std::min(steps_, last + reach_));
  for (std::size_t p = 0; p < skipped.moments.size(); ++p)
    skipped.moments[p] = static_cast<float>(from.sums[p] * later);
  skipped.center =
      static_cast<float>(std::sqrt(std::pow(beta2, static_cast<double>(kCenter)) /
                                   (1 - std::pow(beta2, static_cast<double>(last + kCenter)))));
  skipped.by_steps = from.remainder > kLargestRemainder * std::fabs(from.sums[0]);
  return skipped;
}

AdamFactors CatchUp::factors(std::int64_t step) const {
  return adam_factors(settings_, step, rates_[static_cast<std::size_t>(step - 1)]);
}

}  // namespace longhaul::compress
