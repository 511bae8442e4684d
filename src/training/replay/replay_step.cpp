#include "training/replay/replay_step.hpp"

#include <cmath>

#include "base/error.hpp"

namespace longhaul::training {
namespace {

void check_decay(const StepRule& rule, const char* name, float decay, bool may_be_one) {
  if (!(decay >= 0 && decay <= 1))
    fail("{} is {} (the share of a moment that is left after a step). Give one from 0 to 1.", name,
         decay);
  if (decay < 1 || (may_be_one && rule.lazy == LazySteps::skip)) return;
  fail("{} is 1 (a moment would never end). Give less than 1.", name);
}

}  // namespace

void check(const StepRule& rule) {
  if (!std::isfinite(rule.learning_rate))
    fail("the learning rate is {} (no finite number). Give one.", rule.learning_rate);
  if (rule.kind == StepKind::momentum || rule.kind == StepKind::nesterov)
    check_decay(rule, "momentum", rule.momentum, true);
  if (rule.kind != StepKind::adamw) return;
  check_decay(rule, "beta1", rule.beta1, false);
  check_decay(rule, "beta2", rule.beta2, false);
  if (!(rule.epsilon > 0))
    fail("epsilon is {} (it keeps a division finite). Give one above 0.", rule.epsilon);
  if (!(rule.weight_decay >= 0))
    fail("the weight decay is {} (weights would grow). Give one from 0 on.", rule.weight_decay);
}

ReplayStepper::ReplayStepper(const StepRule& rule, std::size_t count)
    : rule_{(check(rule), rule)}, first_(count), second_(count), last_step_(count) {}

void ReplayStepper::step(std::span<float> weights, const ReplaySet& sum) {
  LONGHAUL_ASSERT(weights.size() == first_.size() && sum.numbers.size() == first_.size(),
                  "{} weights and {} gradients of {}", weights.size(), sum.numbers.size(),
                  first_.size());
  ++steps_;
  const Factors now = factors(steps_);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (sum.has[i] == 0) continue;
    if (rule_.lazy == LazySteps::exact) play_missed(weights[i], i, steps_ - 1);
    move(weights[i], i, sum.numbers[i], now);
    last_step_[i] = steps_;
  }
  if (steps_ % kAllAfter == 0) catch_up(weights);
}

void ReplayStepper::catch_up(std::span<float> weights) {
  if (rule_.lazy != LazySteps::exact) return;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    play_missed(weights[i], i, steps_);
    last_step_[i] = steps_;
  }
}

/// Those of AdamW; others use none.
ReplayStepper::Factors ReplayStepper::factors(std::int64_t step) const {
  const auto power = [&](float beta) {
    return std::pow(static_cast<double>(beta), static_cast<double>(step));
  };
  return {static_cast<float>(static_cast<double>(rule_.learning_rate) / (1 - power(rule_.beta1))),
          static_cast<float>(1 / std::sqrt(1 - power(rule_.beta2))),
          1 - rule_.learning_rate * rule_.weight_decay};
}

void ReplayStepper::move(float& weight, std::size_t number, float gradient, const Factors& now) {
  const float rate = rule_.learning_rate, mu = rule_.momentum;
  float& m = first_[number];
  switch (rule_.kind) {
    case StepKind::sgd: weight = weight - rate * gradient; return;
    case StepKind::momentum:
      m = mu * m + gradient;
      weight = weight - rate * m;
      return;
    case StepKind::nesterov:
      m = mu * m + gradient;
      weight = weight - rate * (gradient + mu * m);
      return;
    case StepKind::adamw: break;
  }
  float& v = second_[number];
  m = rule_.beta1 * m + (1 - rule_.beta1) * gradient;
  v = rule_.beta2 * v + ((1 - rule_.beta2) * gradient) * gradient;
  const float root = std::sqrt(v) * now.correction + rule_.epsilon;
  weight = weight * now.kept - (now.rate * m) / root;
}

/// In double precision: fewer roundings than a dense optimizer's fp32, not other steps.
void ReplayStepper::play_missed(float& weight, std::size_t number, std::int64_t up_to) {
  if (last_step_[number] >= up_to) return;
  double w = weight, m = first_[number], v = second_[number];
  const double rate = rule_.learning_rate, mu = rule_.momentum;
  for (std::int64_t step = last_step_[number] + 1; step <= up_to; ++step) {
    switch (rule_.kind) {
      case StepKind::sgd: return;
      case StepKind::momentum:
        m *= mu;
        w -= rate * m;
        continue;
      case StepKind::nesterov:
        m *= mu;
        w -= rate * mu * m;
        continue;
      case StepKind::adamw: break;
    }
    const Factors then = factors(step);
    m *= rule_.beta1;
    v *= rule_.beta2;
    w = w * then.kept - then.rate * m / (std::sqrt(v) * then.correction + rule_.epsilon);
  }
  weight = static_cast<float>(w);
  first_[number] = static_cast<float>(m);
  second_[number] = static_cast<float>(v);
}

}  // namespace longhaul::training
