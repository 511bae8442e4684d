#include "training/replay/replay_rivals.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "base/kept_share.hpp"
#include "training/replay/replay_choice.hpp"
#include "training/replay/replay_set.hpp"

namespace longhaul::training {
namespace {

constexpr std::size_t kReplayCosines = 64;  ///< of DeMo, transformed together
constexpr double kReplayRamp[] = {0.25, 0.0625, 0.015625, 0.004, 0.001};

GradientCompression largest_numbers(double keep) {
  GradientCompression compress;
  compress.method = CompressMethod::topk;
  compress.keep = keep;
  return compress;
}

/// Deep gradient compression: momentum is gathered before numbers wait.
class ReplayDgc final : public ReplayRivalPart {
public:
  ReplayDgc(const ReplayRival& rival, const StepRule& step, std::size_t replicas, std::size_t count)
      : rival_{rival},
        rate_{step.learning_rate},
        momenta_(replicas, std::vector<float>(count)),
        waiting_{momenta_},
        choosers_(replicas, ReplayChooser{largest_numbers(rival.keep), count, rival.keep, 0}) {}

  void run(std::span<const std::span<const float>> gradients, std::span<float> weights) override {
    const double share = share_of(steps_++);
    std::vector<ReplaySet> sets;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        momenta_[r][i] = rival_.momentum * momenta_[r][i] + gradients[r][i];
        waiting_[r][i] = waiting_[r][i] + momenta_[r][i];
      }
      choosers_[r].set_share(share);
      sets.push_back(choosers_[r].take(waiting_[r]));
      for (std::size_t i = 0; i < weights.size(); ++i)
        if (share < 1 && sets.back().has[i] != 0) momenta_[r][i] = 0;
    }
    const ReplaySet sum = sum_of_sets(sets);
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (sum.has[i] != 0) weights[i] = weights[i] - rate_ * sum.numbers[i];
  }
  std::span<const float> residual(std::size_t replica) const override { return waiting_[replica]; }

private:
  [[nodiscard]] double share_of(int step) const {
    if (rival_.warm_up <= 0) return rival_.keep;
    const int stage = step / rival_.warm_up;
    return stage < static_cast<int>(std::size(kReplayRamp))
               ? std::max(kReplayRamp[stage], rival_.keep)
               : rival_.keep;
  }

  ReplayRival rival_;
  float rate_;
  int steps_ = 0;
  std::vector<std::vector<float>> momenta_, waiting_;  ///< of each replica
  std::vector<ReplayChooser> choosers_;
};

/// Cosine k at place i.
std::vector<float> table_of_cosines() {
  constexpr auto kSize = static_cast<double>(kReplayCosines);
  std::vector<float> table(kReplayCosines * kReplayCosines);
  for (std::size_t k = 0; k < kReplayCosines; ++k)
    for (std::size_t i = 0; i < kReplayCosines; ++i) {
      const double angle =
          std::numbers::pi / kSize * (static_cast<double>(i) + 0.5) * static_cast<double>(k);
      table[k * kReplayCosines + i] =
          static_cast<float>(std::sqrt((k == 0 ? 1 : 2) / kSize) * std::cos(angle));
    }
  return table;
}

/// DeMo: of each 64 numbers of the momentum the largest cosines; steps of signs.
class ReplayDemo final : public ReplayRivalPart {
public:
  ReplayDemo(const ReplayRival& rival, const StepRule& step, std::size_t replicas,
             std::size_t count)
      : decay_{rival.decay},
        rate_{step.learning_rate},
        kept_{std::clamp<std::size_t>(
            static_cast<std::size_t>(rival.keep * static_cast<double>(kReplayCosines) + 1e-9), 1,
            kReplayCosines)},
        count_{count},
        momenta_(replicas, std::vector<float>((count + kReplayCosines - 1) / kReplayCosines *
                                              kReplayCosines)) {}

  void run(std::span<const std::span<const float>> gradients, std::span<float> weights) override {
    std::vector<ReplaySet> sets;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      std::vector<float>& momentum = momenta_[r];
      for (std::size_t i = 0; i < count_; ++i) momentum[i] = decay_ * momentum[i] + gradients[r][i];
      ReplaySet& set = sets.emplace_back(momentum.size());
      for (std::size_t begin = 0; begin < momentum.size(); begin += kReplayCosines)
        choose(std::span{momentum}.subspan(begin, kReplayCosines), begin, set);
    }
    const ReplaySet sum = sum_of_sets(sets);
    for (std::size_t begin = 0; begin < sum.numbers.size(); begin += kReplayCosines) {
      const std::vector<float> numbers =
          back(std::span{sum.numbers}.subspan(begin, kReplayCosines));
      for (std::size_t i = begin; i < std::min(count_, begin + kReplayCosines); ++i)
        if (numbers[i - begin] != 0)
          weights[i] = weights[i] - (numbers[i - begin] < 0 ? -rate_ : rate_);
    }
  }
  std::span<const float> residual(std::size_t replica) const override {
    return std::span{momenta_[replica]}.first(count_);
  }

private:
  /// What is kept of one chunk goes into the set, and its numbers out of the momentum.
  void choose(std::span<float> chunk, std::size_t begin, ReplaySet& set) const {
    std::vector<float> cosines(kReplayCosines);
    for (std::size_t k = 0; k < kReplayCosines; ++k)
      for (std::size_t i = 0; i < kReplayCosines; ++i)
        cosines[k] = cosines[k] + chunk[i] * table_[k * kReplayCosines + i];
    ReplayChooser largest{largest_numbers(1), kReplayCosines, 1, 0};
    largest.set_share((static_cast<double>(kept_)) / static_cast<double>(kReplayCosines));
    const ReplaySet kept = largest.take(cosines);
    std::ranges::copy(kept.numbers, set.numbers.begin() + static_cast<std::ptrdiff_t>(begin));
    std::ranges::copy(kept.has, set.has.begin() + static_cast<std::ptrdiff_t>(begin));
    const std::vector<float> numbers = back(kept.numbers);
    for (std::size_t i = 0; i < kReplayCosines; ++i) chunk[i] = chunk[i] - numbers[i];
  }
  /// Numbers of cosines, added up in the order of the cosines.
  [[nodiscard]] std::vector<float> back(std::span<const float> cosines) const {
    std::vector<float> numbers(kReplayCosines);
    for (std::size_t k = 0; k < kReplayCosines; ++k)
      for (std::size_t i = 0; cosines[k] != 0 && i < kReplayCosines; ++i)
        numbers[i] = numbers[i] + cosines[k] * table_[k * kReplayCosines + i];
    return numbers;
  }

  float decay_, rate_;
  std::size_t kept_, count_;
  std::vector<float> table_ = table_of_cosines();
  std::vector<std::vector<float>> momenta_;  ///< of each replica, filled up to whole chunks
};

/// All numbers become their mean magnitude with their sign; what that leaves stays in `sum`.
std::vector<float> taken_by_sign(std::vector<float>& sum) {
  double mass = 0;
  for (const float number : sum) mass += std::abs(static_cast<double>(number));
  const auto magnitude = static_cast<float>(mass / static_cast<double>(sum.size()));
  std::vector<float> sent(sum.size());
  for (std::size_t i = 0; i < sum.size(); ++i) {
    sent[i] = sum[i] < 0 ? -magnitude : magnitude;
    sum[i] = sum[i] - sent[i];
  }
  return sent;
}

/// 1-bit Adam: dense Adam, then signs both ways and a second moment that stays.
class ReplayOneBit final : public ReplayRivalPart {
public:
  ReplayOneBit(const ReplayRival& rival, const StepRule& step, std::size_t replicas,
               std::size_t count)
      : warm_up_{rival.warm_up},
        step_{step},
        first_(count),
        second_(count),
        server_(count),
        residuals_(replicas, std::vector<float>(count)) {}

  void run(std::span<const std::span<const float>> gradients, std::span<float> weights) override {
    if (steps_ < warm_up_)
      average(gradients);
    else
      average_by_sign(gradients);
    ++steps_;
    const double first = 1 - std::pow(static_cast<double>(step_.beta1), steps_);
    const double second =
        1 - std::pow(static_cast<double>(step_.beta2), std::min(steps_, warm_up_));
    for (std::size_t i = 0; i < weights.size(); ++i) {
      const double root = std::sqrt(static_cast<double>(second_[i]) / second);
      const double step = static_cast<double>(step_.learning_rate) *
                          (static_cast<double>(first_[i]) / first) /
                          (root + static_cast<double>(step_.epsilon));
      weights[i] = weights[i] - static_cast<float>(step);
    }
  }
  std::span<const float> residual(std::size_t replica) const override {
    return residuals_[replica];
  }

private:
  void average(std::span<const std::span<const float>> gradients) {
    for (std::size_t i = 0; i < first_.size(); ++i) {
      float mean = gradients[0][i];
      for (std::size_t r = 1; r < gradients.size(); ++r) mean = mean + gradients[r][i];
      first_[i] = step_.beta1 * first_[i] + (1 - step_.beta1) * mean;
      second_[i] = step_.beta2 * second_[i] + ((1 - step_.beta2) * mean) * mean;
    }
  }
  void average_by_sign(std::span<const std::span<const float>> gradients) {
    const auto replicas = static_cast<float>(gradients.size());
    const float share = 1 / replicas;
    for (std::size_t r = 0; r < gradients.size(); ++r) {
      std::vector<float>& sum = residuals_[r];
      for (std::size_t i = 0; i < sum.size(); ++i)
        sum[i] =
            sum[i] + (step_.beta1 * first_[i] + ((1 - step_.beta1) * replicas) * gradients[r][i]);
      const std::vector<float> sent = taken_by_sign(sum);
      for (std::size_t i = 0; i < sum.size(); ++i) server_[i] = server_[i] + share * sent[i];
    }
    first_ = taken_by_sign(server_);
  }

  int warm_up_, steps_ = 0;
  StepRule step_;
  std::vector<float> first_, second_, server_;
  std::vector<std::vector<float>> residuals_;  ///< of each replica
};

}  // namespace

std::unique_ptr<ReplayRivalPart> make_replayed_rival(const ReplayRival& rival, const StepRule& step,
                                                     std::size_t replicas, std::size_t count) {
  if (!is_kept_share(rival.keep))
    fail("{}: keep is {} (a share of the numbers). Give one above 0 and at most 1.",
         to_string(rival.method), rival.keep);
  for (const float factor : {rival.momentum, rival.decay})
    if (!(factor >= 0 && factor <= 1))
      fail("{}: a momentum of {} (the share that is left of it). Give one from 0 to 1.",
           to_string(rival.method), factor);
  switch (rival.method) {
    case ReplayedRival::dgc: return std::make_unique<ReplayDgc>(rival, step, replicas, count);
    case ReplayedRival::demo: return std::make_unique<ReplayDemo>(rival, step, replicas, count);
    case ReplayedRival::onebit: break;
  }
  if (rival.warm_up < 1)
    fail(
        "onebit: a warm-up of {} steps (its second moment divides all later ones). Give 1 or more.",
        rival.warm_up);
  return std::make_unique<ReplayOneBit>(rival, step, replicas, count);
}

void round_to_four_levels(std::span<float> numbers) {
  double all = 0, below = 0, above = 0;
  for (const float number : numbers) all += std::abs(static_cast<double>(number));
  const double mean = numbers.empty() ? 0 : all / static_cast<double>(numbers.size());
  std::size_t small = 0, large = 0;
  for (const float number : numbers) {
    const double magnitude = std::abs(static_cast<double>(number));
    if (magnitude < mean)
      ++small, below += magnitude;
    else
      ++large, above += magnitude;
  }
  const auto low = static_cast<float>(small > 0 ? below / static_cast<double>(small) : 0);
  const auto high = static_cast<float>(large > 0 ? above / static_cast<double>(large) : 0);
  for (float& number : numbers) {
    const float level = std::abs(static_cast<double>(number)) < mean ? low : high;
    number = std::signbit(number) ? -level : level;
  }
}

}  // namespace longhaul::training
