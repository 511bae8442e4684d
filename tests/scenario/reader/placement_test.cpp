// Scenarios that leave it to the planner of sites where their stages lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Two datacenters, of speed 1 and 2, that do not say what they hold.
const std::string kOpen = R"([parallel]
stages = 4
microbatches = 8
[costs]
forward = "10ms"
message = "1MiB"
weights = "8MiB"
[[datacenter]]
name = "west"
gpus = 8
[[datacenter]]
name = "east"
gpus = 4
speed = 2
[[link]]
between = "all"
latency = "10ms"
)";

Scenario parse_open(const std::string& text, const std::vector<std::string>& set = {}) {
  return parse_scenario(text, "s.toml", set, Placing::optional);
}

std::string complaint_of_open(const std::string& text, const std::vector<std::string>& set = {}) {
  try {
    (void)parse_open(text, set);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Unplaced, IsAcceptedOnlyWhereItIsAskedFor) {
  EXPECT_THAT(complaint(kOpen), StartsWith("s.toml:8:1: none of 2 datacenters says which of 4 "
                                           "stages it holds"));
  EXPECT_THAT(complaint(kOpen), HasSubstr("ask `longhaul plan`"));
  const Scenario scenario = parse_open(kOpen);
  EXPECT_FALSE(scenario.is_placed());
  EXPECT_EQ(scenario.datacenters.size(), 2U);
  EXPECT_EQ(scenario.datacenters[1].gpus, 4);
  EXPECT_EQ(scenario.links.size(), 2U);
}

TEST(Unplaced, KeepsCostsOfSpeedOne) {
  const Scenario scenario = parse_open(kOpen);
  EXPECT_EQ(scenario.datacenters[1].speed, 2);
  EXPECT_THAT(scenario.costs.forward, Each(10ms));
  EXPECT_EQ(scenario.speed_of_stage(DeviceId{3}), 1);
  EXPECT_EQ(scenario.as_played().placement.size(), 0U);
}

TEST(Unplaced, OneDatacenterHoldsAllAndOnePlaceIsNotEnough) {
  const std::string one = kOpen.substr(0, kOpen.find("[[datacenter]]\nname = \"east\""));
  EXPECT_TRUE(parse_open(one).is_placed());
  EXPECT_THAT(complaint_of_open(kOpen, {"datacenter.west.stages=[0,1]"}),
              HasSubstr("placed twice"));
  EXPECT_TRUE(
      parse_open(kOpen, {"datacenter.west.stages=0-1", "datacenter.east.stages=2-3"}).is_placed());
}

TEST(Unplaced, NeedsNoLinksButSizes) {
  const std::string apart = kOpen.substr(0, kOpen.find("[[link]]"));
  EXPECT_EQ(complaint_of_open(apart), "accepted");
  EXPECT_THAT(complaint_of_open(kOpen, {"costs.weights=0B"}), "accepted");
  std::string text = kOpen;
  text.erase(text.find("weights = "), std::string{"weights = \"8MiB\"\n"}.size());
  EXPECT_THAT(complaint_of_open(text), HasSubstr("need costs.weights"));
  EXPECT_EQ(complaint_of_open(text, {"parallel.gradient_sync=none"}), "accepted");
}

TEST(Unplaced, ADatacenterMayBeEmpty) {
  EXPECT_EQ(parse_open(kOpen, {"datacenter.east.gpus=0"}).datacenters[1].gpus, 0);
  EXPECT_THAT(complaint(joined(kLines), {"datacenter.east.gpus=0"}), HasSubstr("too few"));
}

}  // namespace
}  // namespace longhaul::scenario
