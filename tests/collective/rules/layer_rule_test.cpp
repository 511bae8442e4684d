#include "collective/rules/layer_rule.hpp"

#include <gtest/gtest.h>

namespace longhaul::collective {
namespace {

constexpr Duration kLayerUnit = std::chrono::milliseconds{1};

TEST(LayerRule, SaysWhatEachOrderTakes) {
  const LayerTimes one =
      layer_times({3 * kLayerUnit, 4 * kLayerUnit, 2 * kLayerUnit, 4 * kLayerUnit, 2 * kLayerUnit,
                   3 * kLayerUnit, 1 * kLayerUnit});
  EXPECT_EQ(one.activation_first, 14 * kLayerUnit);
  EXPECT_EQ(one.weight_first, 13 * kLayerUnit);
  const LayerTimes other =
      layer_times({1 * kLayerUnit, 4 * kLayerUnit, 3 * kLayerUnit, 4 * kLayerUnit, 3 * kLayerUnit,
                   1 * kLayerUnit, 2 * kLayerUnit});
  EXPECT_EQ(other.activation_first, 11 * kLayerUnit);
  EXPECT_EQ(other.weight_first, 16 * kLayerUnit);
}

TEST(LayerRule, WithoutCommunicationIsTheSumOfComputation) {
  const LayerTimes times =
      layer_times({0 * kLayerUnit, 4 * kLayerUnit, 0 * kLayerUnit, 5 * kLayerUnit, 0 * kLayerUnit,
                   0 * kLayerUnit, 2 * kLayerUnit});
  EXPECT_EQ(times.activation_first, 11 * kLayerUnit);
  EXPECT_EQ(times.weight_first, 11 * kLayerUnit);
}

}  // namespace
}  // namespace longhaul::collective
