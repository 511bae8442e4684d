#include "training/parts/one_bit_method.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "compress/rivals/bit_payloads.hpp"
#include "compress/wire/dense.hpp"

namespace longhaul::training {
namespace {

/// One replica's side, and the server's.
class OneBitMethod final : public PartMethod {
public:
  OneBitMethod(const RivalSettings& settings, const PartPlace& place, const StepSettings& step)
      : warm_up_{settings.warm_up},
        place_{place},
        rate_{step.learning_rate},
        adam_{step.optimizer},
        first_(static_cast<std::size_t>(place.numbers)),
        second_(first_.size()),
        residual_(first_.size()),
        server_residual_(first_.size()) {}

  /// The gradient is its share of the mean; times the replicas it is the replica's own.
  std::vector<std::byte> own_set(int iteration, std::span<const float> gradient) override {
    compress::require_finite(gradient);
    if (place_.accounts) account(iteration, gradient);
    if (iteration < warm_up_) return compress::encode_dense(gradient, compress::DenseFormat::f32);
    const auto own = static_cast<float>(place_.replicas);
    for (std::size_t i = 0; i < residual_.size(); ++i)
      residual_[i] += adam_.beta1 * first_[i] + (1 - adam_.beta1) * own * gradient[i];
    return compress::encode_one_bit(compress::one_bit(residual_));
  }
  std::vector<std::byte> site_set(int /*iteration*/, std::span<const SetPayload> sets) override {
    fail("{}: a site's choice is not defined. Use exchange = \"direct\".", sets.front().source);
  }
  void merge(int iteration, std::span<const SetPayload> sets) override {
    if (iteration < warm_up_) {
      const std::vector<float> mean = sum_of_dense(sets, place_.numbers);
      for (std::size_t i = 0; i < first_.size(); ++i) {
        first_[i] = adam_.beta1 * first_[i] + (1 - adam_.beta1) * mean[i];
        second_[i] = adam_.beta2 * second_[i] + (1 - adam_.beta2) * mean[i] * mean[i];
      }
      if (place_.accounts) account_answer(mean);
      return;
    }
    const float share = 1 / static_cast<float>(sets.size());
    for (const SetPayload& set : sets) {
      const compress::OneBitVector one =
          compress::decode_one_bit(set.payload, {set.source, place_.numbers});
      for (std::size_t i = 0; i < first_.size(); ++i) server_residual_[i] += share * one.at(i);
    }
    const compress::OneBitVector answer = compress::one_bit(server_residual_);
    for (std::size_t i = 0; i < first_.size(); ++i) first_[i] = answer.at(i);
    if (place_.accounts) account_answer(first_);
  }
  void step(int iteration, std::span<float> weights) override {
    const auto left = [](float beta, int steps) {
      return 1 - std::pow(static_cast<double>(beta), static_cast<double>(steps));
    };
    const double first = left(adam_.beta1, iteration + 1);
    const double second = left(adam_.beta2, std::min(iteration + 1, warm_up_));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double root = std::sqrt(static_cast<double>(second_[i]) / second);
      weights[i] -=
          static_cast<float>(static_cast<double>(rate_) * (static_cast<double>(first_[i]) / first) /
                             (root + static_cast<double>(adam_.epsilon)));
    }
  }
  /// What the server has not answered is on its way, not lost.
  void finish() override {
    if (place_.accounts) account_answer(server_residual_);
  }
  /// The server's side, too, which every replica plays.
  void save(StateWriter& to) const override {
    for (const auto* const each : {&first_, &second_, &residual_, &server_residual_})
      to.put_all<float>(*each);
    to.put_all<double>(seen_);
    to.put_all<double>(merged_);
  }
  void load(StateReader& from) override {
    for (auto* const each : {&first_, &second_, &residual_, &server_residual_})
      from.take_same(*each);
    seen_ = from.take_all<double>();
    merged_ = from.take_all<double>();
  }
  /// One of the warm-up.
  std::size_t largest_set() const override { return compress::kPayloadHeader + 4 * first_.size(); }
  std::span<const float> residual() const override { return residual_; }
  std::span<const double> gradients_seen() const override { return seen_; }
  std::span<const double> sums_seen() const override { return merged_; }

private:
  /// What a replica has to send, as the residual has it: of the mean that is stepped with, times
  /// the replicas. In the warm-up that is its gradient, later its momentum.
  void account(int iteration, std::span<const float> gradient) {
    const double replicas = place_.replicas;
    const auto beta = static_cast<double>(adam_.beta1);
    seen_.resize(gradient.size());
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double own = replicas * static_cast<double>(gradient[i]);
      seen_[i] +=
          iteration < warm_up_ ? own : beta * static_cast<double>(first_[i]) + (1 - beta) * own;
    }
  }
  void account_answer(std::span<const float> mean) {
    merged_.resize(mean.size());
    for (std::size_t i = 0; i < mean.size(); ++i)
      merged_[i] += place_.replicas * static_cast<double>(mean[i]);
  }

  int warm_up_;
  PartPlace place_;
  float rate_;
  compress::OptimizerSettings adam_;
  std::vector<float> first_, second_, residual_, server_residual_;
  std::vector<double> seen_, merged_;
};

}  // namespace

std::unique_ptr<PartMethod> make_one_bit(const RivalSettings& settings, const PartPlace& place,
                                         const StepSettings& step) {
  if (settings.warm_up < 1)
    fail(
        "onebit: a warm-up of {} steps (what it learns of each number's size divides all later "
        "steps). Give 1 or more, as in onebit:warmup=20.",
        settings.warm_up);
  return std::make_unique<OneBitMethod>(settings, place, step);
}

}  // namespace longhaul::training
