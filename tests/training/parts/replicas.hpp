#pragma once

#include <cmath>
#include <cstddef>
#include <functional>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "base/random.hpp"
#include "training/parts/rival_methods.hpp"

namespace longhaul::training {

inline std::vector<float> drawn(std::size_t count, std::uint64_t seed) {
  Random random{seed};
  std::vector<float> numbers(count);
  for (float& number : numbers) number = static_cast<float>(random.normal());
  return numbers;
}

inline StepSettings rule(compress::OptimizerRule rule, float rate) {
  StepSettings step;
  step.optimizer.rule = rule;
  step.learning_rate = rate;
  return step;
}

/// Replicas of one part, each with weights of its own, which an exchange has to keep equal.
class Replicas {
public:
  Replicas(const MakePartMethod& make, int replicas, std::size_t count) {
    const PartPlace place{static_cast<std::int64_t>(count), replicas, 1, 0};
    for (int r = 0; r < replicas; ++r) methods_.push_back(make(place));
    weights.assign(to_size(replicas), drawn(count, 1));
  }

  /// All sets of an iteration are made, and then summed by each.
  void play(int iteration, const std::vector<std::vector<float>>& gradients) {
    std::vector<std::vector<std::byte>> payloads;
    for (std::size_t r = 0; r < methods_.size(); ++r) {
      payloads.push_back(methods_[r]->own_set(iteration, gradients[r]));
      EXPECT_LE(payloads.back().size(), methods_[r]->largest_set());
      if (on_the_way) on_the_way(iteration, r, payloads.back());
    }
    std::vector<SetPayload> sets;
    for (const auto& payload : payloads) sets.push_back({"a member", payload});
    for (std::size_t r = 0; r < methods_.size(); ++r) {
      methods_[r]->merge(iteration, sets);
      methods_[r]->step(iteration, weights[r]);
      EXPECT_EQ(weights[r], weights[0]) << "replica " << r << ", iteration " << iteration;
    }
    set_bytes = payloads.front().size();
  }
  [[nodiscard]] const PartMethod& first() const { return *methods_.front(); }
  [[nodiscard]] const PartMethod& of(std::size_t replica) const { return *methods_[replica]; }
  [[nodiscard]] PartMethod& of(std::size_t replica) { return *methods_[replica]; }
  /// After the last iteration: |gradients - sent - what waits| / |sent|, by number.
  [[nodiscard]] double lost() {
    double missing = 0, all = 0;
    for (const auto& method : methods_) method->finish();
    for (std::size_t i = 0; i < weights[0].size(); ++i) {
      const double sent = first().sums_seen()[i];
      double left = -sent;
      for (const auto& method : methods_)
        left += method->gradients_seen()[i] -
                (method->residual().empty() ? 0 : static_cast<double>(method->residual()[i]));
      missing += left * left;
      all += sent * sent;
    }
    return std::sqrt(missing / all);
  }

  std::vector<std::vector<float>> weights;
  std::size_t set_bytes = 0;
  /// May change what all get of a replica's set.
  std::function<void(int iteration, std::size_t replica, std::vector<std::byte>& set)> on_the_way;

private:
  std::vector<std::unique_ptr<PartMethod>> methods_;
};

inline MakePartMethod rival(const RivalSettings& settings, const StepSettings& step = {}) {
  return [=](const PartPlace& place) { return make_rival(settings, place, step); };
}

inline MakePartMethod dense(const StepSettings& step) {
  GradientCompression none;
  none.method = CompressMethod::none;
  return [=](const PartPlace& place) { return make_part_method(none, place, step); };
}

/// Of each replica: its share of the mean gradient.
inline std::vector<std::vector<float>> gradients_of(int replicas, int iteration,
                                                    std::size_t count) {
  std::vector<std::vector<float>> gradients;
  for (int r = 0; r < replicas; ++r) {
    gradients.push_back(drawn(count, static_cast<std::uint64_t>(100 + 10 * iteration + r)));
    for (float& number : gradients.back()) number /= static_cast<float>(replicas);
  }
  return gradients;
}

}  // namespace longhaul::training
