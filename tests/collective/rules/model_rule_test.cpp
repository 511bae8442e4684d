#include "collective/rules/model_rule.hpp"

#include <tuple>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::collective {
namespace {

constexpr Duration kModelUnit = std::chrono::milliseconds{1};

std::optional<ModelChoice> choice(int gather, int scatter, int activation, int memory) {
  return model_choice({.gather = gather * kModelUnit,
                       .scatter = scatter * kModelUnit,
                       .forward = 2 * kModelUnit,
                       .backward = 4 * kModelUnit,
                       .activation = Bytes{activation},
                       .memory = Bytes{memory},
                       .microbatches = 16});
}

void expect_choice(const std::optional<ModelChoice>& found, int exposed, int forward,
                   int backward) {
  ASSERT_TRUE(found);
  EXPECT_EQ(found->exposed, exposed * kModelUnit);
  EXPECT_EQ(found->forward, forward);
  EXPECT_EQ(found->backward, backward);
}

TEST(ModelRule, ExposesLeastWithinMemoryAndBatch) {
  expect_choice(choice(16, 24, 1, 8), 0, 8, 6);
  expect_choice(choice(16, 24, 1, 4), 16, 4, 4);
  expect_choice(choice(40, 40, 1, 16), 28, 6, 10);
  expect_choice(choice(0, 0, 1, 16), 0, 1, 1);
  expect_choice(choice(16, 24, 0, 0), 0, 8, 6);  // activations that take no memory
}

TEST(ModelRule, HasNoAnswerWhereNoTwoFit) {
  EXPECT_FALSE(choice(16, 24, 3, 2));
  EXPECT_FALSE(model_choice({.gather = 1 * kModelUnit, .memory = Bytes{9}, .microbatches = 1}));
  EXPECT_TRUE(model_choice({.gather = 1 * kModelUnit, .memory = Bytes{9}, .microbatches = 2}));
}

TEST(ModelRule, EqualsTheBestOfAllPairs) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random{seed};
    const auto time = [&](int most) { return Duration{random.between(0, most)}; };
    const ModelCosts costs{.gather = time(60),
                           .scatter = time(60),
                           .forward = time(9),
                           .backward = time(9),
                           .activation = Bytes{random.between(1, 4)},
                           .memory = Bytes{random.between(0, 30)},
                           .microbatches = static_cast<int>(random.between(1, 14))};
    std::optional<std::tuple<Duration, int, int>> best;  // exposed, together, forward
    for (int l1 = 1; l1 <= costs.microbatches; ++l1) {
      for (int l2 = 1; l1 + l2 <= costs.microbatches; ++l2) {
        if (l1 * costs.activation.count() > costs.memory.count()) continue;
        if (l2 * costs.activation.count() > costs.memory.count()) continue;
        const Duration exposed = std::max(costs.gather - l1 * costs.forward, Duration{}) +
                                 std::max(costs.scatter - l2 * costs.backward, Duration{});
        const std::tuple candidate{exposed, l1 + l2, l1};
        if (!best || candidate < *best) best = candidate;
      }
    }
    const auto found = model_choice(costs);
    ASSERT_EQ(found.has_value(), best.has_value()) << seed;
    if (!found) continue;
    ASSERT_EQ((std::tuple{found->exposed, found->forward + found->backward, found->forward}), *best)
        << seed;
  }
}

}  // namespace
}  // namespace longhaul::collective
