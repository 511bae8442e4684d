#include "scenario/scenario.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul::scenario {
namespace {

TEST(Share, GivesTheRemainderToTheFirstChunkAndAddsUp) {
  EXPECT_EQ(share(101ns, 2, 0), 51ns);
  EXPECT_EQ(share(101ns, 2, 1), 50ns);
  EXPECT_EQ(share(Bytes{11}, 4, 0), Bytes{5});
  EXPECT_EQ(share(Bytes{11}, 4, 3), Bytes{2});
  Random random{1};
  for (int trial = 0; trial < 200; ++trial) {
    const Duration whole{random.between(0, 1'000'000)};
    const int chunks = static_cast<int>(random.between(1, 9));
    Duration sum{};
    for (int local = 0; local < chunks; ++local) sum += share(whole, chunks, local);
    EXPECT_EQ(sum, whole) << chunks << " chunks";
  }
}

TEST(UniformScenario, IsCompleteOnOneDatacenter) {
  const Scenario scenario = uniform_scenario(4, 8);
  EXPECT_EQ(scenario.ranks(), 4);
  EXPECT_EQ(scenario.largest_forward(), 100ns);
  EXPECT_EQ(scenario.costs.backward, std::vector<Duration>(4, 200ns));
  EXPECT_EQ(scenario.costs.recompute.size(), 4U);
  EXPECT_EQ(scenario.memory.capacity.size(), 4U);
  EXPECT_EQ(scenario.placement, std::vector<DatacenterId>(4, DatacenterId{0}));
  EXPECT_EQ(scenario.link(DatacenterId{0}, DatacenterId{0}), nullptr);
  EXPECT_EQ(scenario.interfaces(DatacenterId{0}), nullptr);
}

TEST(ActivationBudget, IsMinOfStagesAndMicrobatchesActivationsOfTheLargestStage) {
  Scenario scenario = uniform_scenario(4, 8);
  scenario.costs.activation[2] = 3_MiB;
  EXPECT_EQ(scenario.activation_budget(), 12_MiB);
  scenario.parallel.microbatches = 3;
  EXPECT_EQ(scenario.activation_budget(), 9_MiB);
  scenario.memory.budget = 0.5;
  EXPECT_EQ(scenario.activation_budget(), Bytes{9 * 1024 * 1024 / 2});
}

TEST(Spread, SplitsEveryReplicaInOrderAndLinksEveryPair) {
  Scenario base = uniform_scenario(5, 8);
  base.parallel.replicas = 2;
  const Scenario scenario = spread(base, 2, 40ms, 76ms);
  const std::vector<DatacenterId> replica{DatacenterId{0}, DatacenterId{0}, DatacenterId{0},
                                          DatacenterId{1}, DatacenterId{1}};
  ASSERT_EQ(scenario.placement.size(), 10U);
  for (int rank = 0; rank < 10; ++rank)
    EXPECT_EQ(scenario.datacenter_of(Rank{rank}), replica[static_cast<std::size_t>(rank % 5)]);
  ASSERT_EQ(scenario.links.size(), 2U);
  const Link* back = scenario.link(DatacenterId{1}, DatacenterId{0});
  ASSERT_NE(back, nullptr);
  EXPECT_EQ(back->latency, 40ms);
  EXPECT_EQ(scenario.costs.message[0] / back->bandwidth, 76ms);
  EXPECT_EQ(scenario.link(DatacenterId{0}, DatacenterId{0}), nullptr);
}

TEST(Spread, ZeroTransferTimeIsAnUnlimitedRate) {
  const Scenario scenario = spread(uniform_scenario(8, 16), 4, 1ms, 0ns);
  EXPECT_EQ(scenario.links.size(), 12U);
  EXPECT_TRUE(scenario.links[5].bandwidth.is_unlimited());
}

TEST(AsPlayed, MultipliesEveryDurationAndLeavesTheOriginal) {
  Scenario scenario = spread(uniform_scenario(4, 8, 38ms), 2, 19ms, 76ms);
  scenario.nodes.push_back({DatacenterId{0}, 1, 5_Gbps, Bandwidth::unlimited()});
  scenario.served.push_back({});
  scenario.served[0].decode = DecodeLink{.rate = 5_Gbps, .first_token = 20ms};
  scenario.run.time_scale = 0.25;
  const Scenario played = scenario.as_played();
  EXPECT_EQ(played.run.time_scale, 1.0);
  EXPECT_EQ(played.costs.forward[3], 9'500'000ns);
  EXPECT_EQ(played.costs.backward[3], 19ms);
  EXPECT_EQ(played.costs.recompute[0], 9'500'000ns);
  EXPECT_EQ(played.links[0].latency, 4'750'000ns);
  EXPECT_EQ(played.costs.message[0] / played.links[0].bandwidth, 19ms);
  EXPECT_EQ(played.nodes[0].egress, Bandwidth{20e9});
  EXPECT_TRUE(played.nodes[0].ingress.is_unlimited());
  EXPECT_EQ(played.served[0].decode->rate, Bandwidth{20e9});
  EXPECT_EQ(played.served[0].decode->first_token, 5ms);
  EXPECT_EQ(scenario.costs.forward[3], 38ms);
  EXPECT_EQ(played.as_played().costs.forward, played.costs.forward);
}

TEST(AsPlayed, ScalesTheTransferOfAMessageToTheNearestNanosecond) {
  Random random{2};
  for (int trial = 0; trial < 1000; ++trial) {
    const Duration transfer{random.between(1, 2'000'000'000)};
    const double scale = static_cast<double>(random.between(1, 4000)) / 1000.0;
    Scenario scenario = spread(uniform_scenario(2, 2), 2, 0ns, transfer);
    scenario.run.time_scale = scale;
    const Bandwidth played = scenario.as_played().links[0].bandwidth;
    const double exact = static_cast<double>(transfer.count()) * scale;
    EXPECT_NEAR(static_cast<double>((scenario.costs.message[0] / played).count()), exact, 0.5001);
  }
}

}  // namespace
}  // namespace longhaul::scenario
