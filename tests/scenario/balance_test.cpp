
#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "scenario/model_costs.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

const std::vector<int> kNoLimit(8, 1000);

TEST(BalancedLayers, FasterStagesGetMore) {
  // 64 layers, speeds 1.5 and 1: ten layers take 6.67, six take 6; 11 or 7 would take longer.
  EXPECT_THAT(balanced_layers(64, {1.5, 1.5, 1.5, 1.5, 1, 1, 1, 1}, kNoLimit),
              Optional(ElementsAre(10, 10, 10, 10, 6, 6, 6, 6)));
  EXPECT_THAT(balanced_layers(9, {2, 1}, {1000, 1000}), Optional(ElementsAre(6, 3)));
}

TEST(BalancedLayers, EqualSpeedsGiveTheEvenDivision) {
  Model model;
  for (model.layers = 8; model.layers < 30; ++model.layers) {
    EXPECT_THAT(balanced_layers(model.layers, std::vector<double>(8, 3.0), kNoLimit),
                Optional(layers_of_stages(model, 8)));
  }
}

TEST(BalancedLayers, EveryStageHasOneHoweverSlow) {
  EXPECT_THAT(balanced_layers(5, {1, 0.001, 1}, {9, 9, 9}), Optional(ElementsAre(2, 1, 2)));
  EXPECT_EQ(balanced_layers(2, {1, 1, 1}, {9, 9, 9}), std::nullopt);
}

TEST(BalancedLayers, KeepsToTheLimits) {
  EXPECT_THAT(balanced_layers(10, {4, 1, 1}, {4, 9, 9}), Optional(ElementsAre(4, 3, 3)));
  EXPECT_EQ(balanced_layers(10, {4, 1, 1}, {4, 3, 2}), std::nullopt);
  EXPECT_EQ(balanced_layers(3, {1, 1, 1}, {1, 0, 9}), std::nullopt);
}

/// Times of the stages, longest first.
std::vector<double> times_of(const std::vector<int>& layers, const std::vector<double>& speeds) {
  std::vector<double> times;
  for (std::size_t i = 0; i < layers.size(); ++i) times.push_back(layers[i] / speeds[i]);
  std::ranges::sort(times, std::greater<>{});
  return times;
}

/// Every division of `left` layers over the stages from `layers.size()` on.
void for_each_division(int left, const std::vector<int>& most, std::vector<int>& layers,
                       const std::function<void(const std::vector<int>&)>& see) {
  if (layers.size() == most.size()) {
    if (left == 0) see(layers);
    return;
  }
  for (int count = 1; count <= std::min(left, most[layers.size()]); ++count) {
    layers.push_back(count);
    for_each_division(left - count, most, layers, see);
    layers.pop_back();
  }
}

TEST(BalancedLayers, NoDivisionIsBetter) {
  Random random{5};
  for (int trial = 0; trial < 300; ++trial) {
    const auto stages = static_cast<std::size_t>(random.between(1, 5));
    std::vector<double> speeds;
    std::vector<int> most;
    for (std::size_t i = 0; i < stages; ++i) {
      speeds.push_back(static_cast<double>(random.between(1, 12)) / 4);
      most.push_back(static_cast<int>(random.between(1, 9)));
    }
    const int layers = static_cast<int>(random.between(1, 14));
    const auto found = balanced_layers(layers, speeds, most);
    bool possible = false;
    std::vector<int> none;
    for_each_division(layers, most, none, [&](const std::vector<int>& other) {
      possible = true;
      ASSERT_TRUE(found.has_value());
      EXPECT_LE(times_of(*found, speeds), times_of(other, speeds));  // longest first
    });
    EXPECT_EQ(found.has_value(), possible);
  }
}

}  // namespace
}  // namespace longhaul::scenario
