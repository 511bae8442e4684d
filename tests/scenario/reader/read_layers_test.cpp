// model.layers_per_stage and datacenter.speed: what they make of costs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Four stages of M70, 16 layers each; line 4 is open.
Scenario measured(const std::string& line, const std::vector<std::string>& set = {}) {
  return parse_scenario("[model]\npreset = \"m70-measured\"\n" + line + R"(
[parallel]
stages = 4
microbatches = 4
[[datacenter]]
name = "west"
stages = "0-1"
speed = 2
[[datacenter]]
name = "east"
stages = "2-3"
[[link]]
between = "all"
)",
                        "s.toml", set);
}

TEST(Layers, AreDividedEvenlyUnlessSaidOtherwise) {
  for (const char* line : {"", "layers_per_stage = \"even\""}) {
    const Scenario scenario = measured(line);
    EXPECT_THAT(scenario.layers, ElementsAre(16, 16, 16, 16));
    EXPECT_THAT(scenario.costs.forward, ElementsAre(38ms, 38ms, 76ms, 76ms));
    EXPECT_THAT(scenario.costs.wgrad, ElementsAre(35ms, 35ms, 70ms, 70ms));
  }
}

TEST(Layers, OfAListCostTheirShare) {
  const Scenario scenario = measured("layers_per_stage = [8, 24, 16, 16]");
  EXPECT_THAT(scenario.layers, ElementsAre(8, 24, 16, 16));
  EXPECT_THAT(scenario.costs.forward, ElementsAre(19ms, 57ms, 76ms, 76ms));
  EXPECT_EQ(3 * scenario.costs.activation[0].count(), scenario.costs.activation[1].count());
  EXPECT_EQ(3 * scenario.costs.weights[0].count(), scenario.costs.weights[1].count());
  EXPECT_EQ(scenario.costs.message[0], scenario.costs.message[1]);
}

TEST(Layers, BalancedFollowSpeedsAndOverridesReachThem) {
  EXPECT_THAT(measured("layers_per_stage = \"balanced\"").layers, ElementsAre(22, 22, 10, 10));
  EXPECT_THAT(measured("", {"model.layers_per_stage=balanced", "datacenter.west.speed=1"}).layers,
              ElementsAre(16, 16, 16, 16));
  EXPECT_THAT(measured("", {"model.layers_per_stage=[1,1,1,61]"}).layers, ElementsAre(1, 1, 1, 61));
}

TEST(Layers, BalancedFitIntoTheCapacity) {
  // A layer weighs 1711276032 bytes, 8 times that with gradients and optimizer, and keeps
  // 1124073472 bytes of each of 4 microbatches: 18 GB.
  const std::vector<std::string> set{R"(memory.capacity=["384GB","240GB","384GB","384GB"])"};
  const Scenario scenario = measured("layers_per_stage = \"balanced\"", set);
  EXPECT_EQ(scenario.costs.weights[2], Bytes{1'711'276'032} * scenario.layers[2]);
  EXPECT_EQ(scenario.costs.activation[2], Bytes{1'124'073'472} * scenario.layers[2]);
  EXPECT_THAT(scenario.layers, ElementsAre(21, 13, 15, 15));
}

TEST(Layers, SpeedDividesGivenTimesToo) {
  const Scenario scenario =
      parse_scenario(joined(kLines), "s.toml", std::vector<std::string>{"datacenter.east.speed=3"});
  EXPECT_THAT(scenario.costs.forward, ElementsAre(40ms, 13'333'333ns));
  EXPECT_THAT(scenario.costs.backward, ElementsAre(80ms, 26'666'667ns));
  EXPECT_TRUE(scenario.layers.empty());
  EXPECT_EQ(scenario.speed_of_stage(DeviceId{1}), 3);
}

TEST(Layers, ThatCannotBeAreRefused) {
  const auto said = [](const std::string& value, const std::string& more = {}) {
    return complaint("[model]\npreset = \"m70-measured\"\nlayers_per_stage = " + value +
                     "\n[parallel]\nstages = 2\nmicrobatches = 4\n" + more);
  };
  const std::string place = "s.toml:3:20: model.layers_per_stage";
  EXPECT_THAT(said("[32, 31]"), AllOf(StartsWith(place), HasSubstr("adds up to 63 layers")));
  EXPECT_THAT(said("[32, 16, 16]"), AllOf(StartsWith(place), HasSubstr("has 3 values")));
  EXPECT_THAT(said("[64, 0]"), HasSubstr("layers_per_stage[1] = 0 is out of range (1 to 64)"));
  EXPECT_THAT(said("[32.0, 32]"), HasSubstr("no whole number"));
  EXPECT_THAT(said("32"), AllOf(StartsWith(place), HasSubstr("no list")));
  EXPECT_THAT(said("\"balance\""), HasSubstr("Did you mean \"balanced\"?"));
  EXPECT_THAT(said("\"balanced\"", "[memory]\ncapacity = \"96GB\""),
              AllOf(StartsWith(place), HasSubstr("no place for 64 layers"), HasSubstr("room for")));
  EXPECT_EQ(said("\"balanced\""), "accepted");
}

}  // namespace
}  // namespace longhaul::scenario
