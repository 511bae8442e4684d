// Costs of replicas that differ: [[replica]], and datacenters of different speeds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

const std::string kThreeReplicas = R"([parallel]
stages = 2
replicas = 3
microbatches = 4
gradient_sync = "none"
[costs]
forward = "12ms"
backward = "24ms"
message = "1MiB"
[[datacenter]]
name = "west"
replicas = [0, 2]
[[datacenter]]
name = "east"
replicas = [1]
)";

TEST(Replicas, ShareOneCostUnlessSomethingDiffers) {
  const Scenario scenario = parse_scenario(kThreeReplicas, "s.toml");
  EXPECT_FALSE(scenario.has_uneven_replicas());
  EXPECT_TRUE(scenario.replica_costs.empty());
  EXPECT_EQ(scenario.costs_of(ReplicaId{2}).forward[1], 12ms);
}

TEST(Replicas, ComputeAtTheSpeedOfTheirDatacenter) {
  const Scenario scenario =
      parse_scenario(kThreeReplicas, "s.toml", std::vector<std::string>{"datacenter.east.speed=2"});
  EXPECT_TRUE(scenario.has_uneven_replicas());
  EXPECT_THAT(scenario.costs_of(ReplicaId{0}).forward, Each(12ms));
  EXPECT_THAT(scenario.costs_of(ReplicaId{1}).forward, Each(6ms));
  EXPECT_THAT(scenario.costs.forward, Each(12ms)) << "the largest";
}

// 2^53 + 1 ns, which no double holds.
TEST(Replicas, TakeExactlyTheirTimesAtSpeedOne) {
  const Scenario scenario = parse_scenario(
      kThreeReplicas, "s.toml",
      std::vector<std::string>{"costs.backward=9007199254740994ns", "costs.wgrad=1ns"});
  EXPECT_THAT(scenario.costs.dgrad, Each(Duration{9'007'199'254'740'993}));
}

TEST(Replicas, HaveTheCostsThatTheyAreGiven) {
  const Scenario scenario = parse_scenario(kThreeReplicas + R"([[replica]]
replicas = "1-2"
forward = ["20ms", "30ms"]
message = "2MiB"
)",
                                           "s.toml");
  EXPECT_EQ(scenario.costs_of(ReplicaId{0}).forward[1], 12ms);
  EXPECT_EQ(scenario.costs_of(ReplicaId{2}).forward[1], 30ms);
  EXPECT_EQ(scenario.costs_of(ReplicaId{2}).backward[1], 24ms);
  EXPECT_EQ(scenario.costs_of(ReplicaId{1}).message[0], 2_MiB);
  EXPECT_EQ(scenario.costs_of(ReplicaId{0}).message[0], 1_MiB);
  EXPECT_EQ(scenario.costs.forward[0], 20ms);
  const Scenario alone = scenario.of_replica(ReplicaId{1});
  EXPECT_EQ(alone.ranks(), 2);
  EXPECT_EQ(alone.costs.forward[0], 20ms);
  EXPECT_EQ(alone.datacenter_of(Rank{1}), DatacenterId{1});
}

TEST(Replicas, ComputeOnceMoreForAsLongAsForward) {
  const std::string faster = "[[replica]]\nreplicas = [1]\nforward = \"1ms\"\n";
  const auto recompute_of = [](const std::string& text) {
    return parse_scenario(text, "s.toml").costs_of(ReplicaId{1}).recompute;
  };
  EXPECT_THAT(recompute_of(kThreeReplicas + faster), Each(1ms));
  EXPECT_THAT(recompute_of(kThreeReplicas + faster + "recompute = \"2ms\"\n"), Each(2ms));
  std::string given = kThreeReplicas;
  given.insert(given.find("forward ="), "recompute = \"3ms\"\n");
  EXPECT_THAT(recompute_of(given + faster), Each(3ms));
}

TEST(Replicas, AreRefusedWhereTheyCannotBe) {
  const std::string one = "[[replica]]\nreplicas = [1]\nforward = \"1ms\"\n";
  EXPECT_THAT(complaint(kThreeReplicas + one + one),
              HasSubstr("replica 1 stands in two [[replica]]"));
  EXPECT_THAT(complaint(kThreeReplicas + "[[replica]]\nforward = \"1ms\"\n"),
              HasSubstr("replica.replicas"));
  EXPECT_THAT(complaint(kThreeReplicas + "[[replica]]\nreplicas = [3]\nforward = \"1ms\"\n"),
              HasSubstr("3"));
  EXPECT_THAT(complaint(kThreeReplicas + "[[replica]]\nreplicas = [1]\n"),
              HasSubstr("[[replica]] without costs"));
  EXPECT_THAT(complaint(kThreeReplicas + "[[replica]]\nreplicas = []\nforward = \"1ms\"\n"),
              HasSubstr("[] names no replica"));
  EXPECT_THAT(complaint(kThreeReplicas + "[[replica]]\nreplicas = [1]\nweights = \"1MiB\"\n"),
              HasSubstr("weights"));
}

}  // namespace
}  // namespace longhaul::scenario
