// Ranks of [parallel]: tensor, shard, order, microbatches of each replica; [[service]].
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Two stages in two datacenters, four replicas.
const std::string kReplicas = R"([parallel]
stages = 2
replicas = 4
microbatches = 4
[costs]
forward = "10ms"
message = "1MiB"
weights = "8MiB"
[[datacenter]]
name = "west"
stages = [0]
[[datacenter]]
name = "east"
stages = [1]
[[link]]
between = "all"
latency = "10ms"
)";

Scenario read(const std::vector<std::string>& set, const std::string& more = "") {
  return parse_scenario(kReplicas + more, "s.toml", set);
}

TEST(Ranks, AreNumberedStageByStageAndReplicaByReplica) {
  const Scenario scenario = read({});
  EXPECT_EQ(scenario.ranks(), 8);
  for (const ReplicaId replica : scenario.replica_ids())
    for (const DeviceId stage : scenario.device_ids())
      EXPECT_EQ(scenario.rank(replica, stage), Rank{2 * number(replica) + number(stage)});
}

TEST(Ranks, OfAStageFollowEachOtherWhereTensorRunsFastest) {
  const Scenario scenario = read({"parallel.tensor=3"});
  EXPECT_EQ(scenario.ranks(), 24);
  EXPECT_EQ(scenario.rank(ReplicaId{0}, DeviceId{1}, 2), Rank{5});
  EXPECT_EQ(scenario.rank(ReplicaId{2}, DeviceId{1}, 1), Rank{3 * (2 * 2 + 1) + 1});
  EXPECT_EQ(scenario.datacenter_of(Rank{2}), DatacenterId{0});
  EXPECT_EQ(scenario.datacenter_of(Rank{3}), DatacenterId{1});
}

TEST(Ranks, FollowMegatronsOrderWhereItIsGiven) {
  const Scenario scenario = read({"parallel.tensor=3", "parallel.order=\"tensor,replica,stage\""});
  EXPECT_EQ(scenario.rank(ReplicaId{2}, DeviceId{1}, 1), Rank{3 * (4 * 1 + 2) + 1});
  EXPECT_EQ(scenario.datacenter_of(Rank{11}), DatacenterId{0});
  EXPECT_EQ(scenario.datacenter_of(Rank{12}), DatacenterId{1});
}

TEST(Ranks, AreFoundAgainInEveryOrder) {
  Random random{5};
  std::vector<std::string> names = every_name<RankDimension>();
  do {
    Scenario scenario = uniform_scenario(static_cast<int>(random.between(1, 5)), 4);
    scenario.parallel.replicas = static_cast<int>(random.between(1, 5));
    scenario.parallel.tensor = static_cast<int>(random.between(1, 5));
    scenario.parallel.order =
        read({"parallel.order=\"" + names[0] + "," + names[1] + "," + names[2] + "\""})
            .parallel.order;
    for (const Rank rank : ids<Rank>(scenario.ranks())) {
      const RankPlace place = scenario.place_of(rank);
      EXPECT_EQ(place.role, RankRole::training);
      EXPECT_EQ(scenario.rank(place.replica, place.stage, place.tensor), rank);
    }
  } while (std::ranges::next_permutation(names).found);
}

TEST(Ranks, OfServicesStandBehindThoseThatTrain) {
  const Scenario scenario = read({}, R"(
[[service]]
role = "decode"
datacenter = "east"
count = 2
[[service]]
role = "controller"
datacenter = "west"
)");
  EXPECT_EQ(scenario.training_ranks(), 8);
  EXPECT_EQ(scenario.ranks(), 11);
  EXPECT_EQ(scenario.place_of(Rank{9}).role, RankRole::decode);
  EXPECT_EQ(scenario.place_of(Rank{10}).role, RankRole::controller);
  EXPECT_EQ(scenario.datacenter_of(Rank{8}), DatacenterId{1});
  EXPECT_EQ(scenario.datacenter_of(Rank{10}), DatacenterId{0});
}

TEST(Ranks, OfServicesTakeGpusToo) {
  const std::string service = "[[service]]\nrole = \"decode\"\ndatacenter = \"east\"\ncount = 2\n";
  std::string text = kReplicas;
  text.insert(text.find("[[datacenter]]\nname = \"east\"") + 29, "gpus = 6\n");
  EXPECT_EQ(parse_scenario(text + service, "s.toml").ranks(), 10);
  EXPECT_THAT(complaint(text + service + service),
              HasSubstr("with this [[service]] east has ranks for 8 GPUs (it has 6)"));
}

TEST(Ranks, ShareTheCostsOfAModel) {
  const std::string model = R"([model]
layers = 8
hidden = 1024
intermediate = 4096
heads = 8
sequence_length = 1024
[parallel]
stages = 2
microbatches = 4
)";
  const Scenario one = parse_scenario(model, "s.toml");
  const Scenario four =
      parse_scenario(model, "s.toml", std::vector<std::string>{"parallel.tensor=4"});
  EXPECT_EQ(four.costs.forward[0], (one.costs.forward[0] + Duration{3}) / 4);
  EXPECT_EQ(four.costs.message[0].count() * 4, one.costs.message[0].count());
  EXPECT_EQ(four.costs.weights[1].count() * 4, one.costs.weights[1].count());
  EXPECT_THAT(complaint(model, {"parallel.tensor=4", "model.tensor_parallel=8"}),
              HasSubstr("parallel.tensor = 4 and model.tensor_parallel = 8 are both given"));
}

TEST(Sharding, TakesAllReplicasUnlessItIsGiven) {
  EXPECT_EQ(read({}).parallel.shard, 1);
  EXPECT_EQ(read({"parallel.gradient_sync=zero3"}).parallel.shard, 4);
  EXPECT_EQ(read({"parallel.gradient_sync=zero3", "parallel.shard=2"}).parallel.shard, 2);
  EXPECT_THAT(complaint(kReplicas, {"parallel.gradient_sync=zero3", "parallel.shard=3"}),
              HasSubstr("parallel.shard = 3 does not divide 4 replicas"));
  EXPECT_THAT(complaint(kReplicas, {"parallel.shard=2"}),
              HasSubstr("parallel.shard = 2 needs gradient_sync = \"zero3\""));
}

TEST(Microbatches, MayBeOfEachReplica) {
  const Scenario scenario = read({"parallel.microbatches=[4, 2, 8, 4]"});
  EXPECT_EQ(scenario.parallel.microbatches, 8);
  EXPECT_EQ(scenario.microbatches_of(ReplicaId{1}), 2);
  EXPECT_TRUE(scenario.has_uneven_replicas());
  EXPECT_FALSE(read({"parallel.microbatches=[4, 4, 4, 4]"}).has_uneven_replicas());
  EXPECT_THAT(complaint(kReplicas, {"parallel.microbatches=[4, 2]"}),
              HasSubstr("parallel.microbatches has 2 counts (parallel.replicas = 4)"));
}

TEST(Ranks, RefuseWhatTheyAreNot) {
  EXPECT_THAT(complaint(kReplicas, {"parallel.order=\"tensor,stage\""}),
              HasSubstr("is no order of a rank's three indices"));
  EXPECT_THAT(complaint(kReplicas, {"parallel.order=\"stage,stage,replica\""}),
              HasSubstr("is no order of a rank's three indices"));
  EXPECT_THAT(complaint(kReplicas, {"parallel.tensor=0"}), HasSubstr("parallel.tensor = 0"));
  const std::string service = "[[service]]\ndatacenter = \"west\"\nrole = ";
  EXPECT_THAT(complaint(kReplicas + service + "\"training\"\n"),
              StartsWith("s.toml:20:8: service.role = \"training\" is no service"));
  EXPECT_THAT(complaint(kReplicas + service + "\"decoder\"\n"), HasSubstr("decode"));
  EXPECT_THAT(complaint(kReplicas + "[[service]]\nrole = \"decode\"\n"),
              HasSubstr("service.datacenter"));
}

}  // namespace
}  // namespace longhaul::scenario
