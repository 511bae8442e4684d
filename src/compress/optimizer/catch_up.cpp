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
      root_kept_{std::sqrt(static_cast<double>(settings.beta2))},
      reach_{reach_of(first_decay_)},
      from_(1),
      kept_(1) {
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
  const bool adam = settings_.rule == OptimizerRule::adamw;
  if (adam) factors_.push_back(adam_factors(settings_, steps_, learning_rate));
  const auto rate = static_cast<double>(adam ? factors_.back().rate : learning_rate);
  const double kept = adam ? static_cast<double>(1 - learning_rate * settings_.weight_decay) : 1.0;
  kept_.push_back(kept_.back());
  if (kept == 0)
    zeroed_ = steps_;
  else
    kept_.back().multiply(kept);
  for (std::int64_t last = std::max(forgotten_, steps_ - reach_); last < steps_; ++last)
    add_to(from_[index_of(last)], last, rate, kept);
  from_.emplace_back();
}

void CatchUp::Product::multiply(double factor) {
  int twos = 0;
  number = std::frexp(number * factor, &twos);
  exponent += twos;
}

void CatchUp::forget() {
  forgotten_ = steps_;
  from_.assign(1, {});
  factors_.clear();
  kept_.assign(1, {});
}

double CatchUp::weight_kept_since(std::int64_t last) const {
  if (zeroed_ > last) return 0;
  const Product& now = kept_.back();
  const Product& then = kept_[index_of(last)];
  constexpr std::int64_t kFar = 5000;  // twos; beyond any double
  const auto twos = static_cast<int>(std::clamp(now.exponent - then.exponent, -kFar, kFar));
  return std::ldexp(now.number / then.number, twos);
}

SkippedSteps CatchUp::since(std::int64_t last) const {
  LONGHAUL_ASSERT(last >= forgotten_ && last <= steps_, "step {} of {} to {}", last, forgotten_,
                  steps_);
  SkippedSteps skipped;
  skipped.from = last;
  skipped.to = steps_;
  const std::int64_t count = steps_ - last;
  if (count == 0) return skipped;
  const FromStep& from = from_[index_of(last)];
  skipped.first_kept = count < static_cast<std::int64_t>(powers_.size())
                           ? static_cast<float>(powers_[static_cast<std::size_t>(count)])
                           : 0;
  if (settings_.rule != OptimizerRule::adamw) {
    skipped.moved = static_cast<float>(from.sums[0]);
    return skipped;
  }
  const auto beta2 = static_cast<double>(settings_.beta2);
  skipped.second_kept = static_cast<float>(std::pow(beta2, static_cast<double>(count)));
  skipped.weight_kept = static_cast<float>(weight_kept_since(last));
  const double later = weight_kept_since(std::min(steps_, last + reach_));
  for (std::size_t p = 0; p < skipped.moments.size(); ++p)
    skipped.moments[p] = static_cast<float>(from.sums[p] * later);
  skipped.center =
      static_cast<float>(std::sqrt(std::pow(beta2, static_cast<double>(kCenter)) /
                                   (1 - std::pow(beta2, static_cast<double>(last + kCenter)))));
  skipped.by_steps = from.remainder > kLargestRemainder * std::fabs(from.sums[0]);
  return skipped;
}

}  // namespace longhaul::compress
