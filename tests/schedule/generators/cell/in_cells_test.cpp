#include "schedule/generators/cell/in_cells.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::schedule {
namespace {

/// A message over the WAN takes twice as long as F; so a cell has two pipelines.
Scenario two_slots(int stages, int microbatches, int replicas) {
  Scenario scenario = uniform_scenario(stages, microbatches);
  scenario.parallel.replicas = replicas;
  scenario.parallel.gradient_sync = GradientSync::none;
  return spread(scenario, 2, Duration::zero(), Duration{200});
}

TEST(ShareWan, NeedsSeveralPipelinesAndSeveralDatacenters) {
  EXPECT_TRUE(shares_wan(two_slots(2, 1, 2)));
  EXPECT_FALSE(shares_wan(two_slots(2, 1, 1)));
  Scenario one_place = two_slots(2, 1, 2);
  for (DatacenterId& at : one_place.placement) at = DatacenterId{0};
  EXPECT_FALSE(shares_wan(one_place));
}

TEST(ShareWan, PoolsWhatTheNodesOfACellHave) {
  Scenario scenario = two_slots(2, 1, 2);
  scenario.nodes = {{DatacenterId{0}, 1, 5_Gbps, 10_Gbps}};
  const Bandwidth alone = scenario.links.front().bandwidth;
  const Scenario pooled = pooled_links(scenario);
  EXPECT_EQ(pooled.links.front().bandwidth, Bandwidth{2 * alone.bits_per_second()});
  EXPECT_EQ(pooled.nodes.front().egress, 10_Gbps);
  EXPECT_EQ(pooled.nodes.front().ingress, 20_Gbps);
}

TEST(ShareWan, PoolsNoMoreThanTheLinkHolds) {
  Scenario scenario = two_slots(2, 1, 2);
  const Bandwidth alone = scenario.links.front().bandwidth;
  scenario.links.front().aggregate = Bandwidth{1.5 * alone.bits_per_second()};
  scenario.links.back().sharing = Sharing::datacenter;
  const Scenario pooled = pooled_links(scenario);
  EXPECT_EQ(pooled.links.front().bandwidth, scenario.links.front().aggregate);
  EXPECT_EQ(pooled.links.back().bandwidth, scenario.links.back().bandwidth);
}

TEST(ShareWan, PoolsLinksWhateverStandsBeforeThem) {
  Scenario scenario = two_slots(2, 1, 2);
  const Bandwidth alone = scenario.links.back().bandwidth;
  scenario.links.front().sharing = Sharing::datacenter;
  Link inside;
  inside.bandwidth = alone;
  scenario.links.insert(scenario.links.begin() + 1, inside);
  const Scenario pooled = pooled_links(scenario);
  EXPECT_EQ(pooled.links[0].bandwidth, alone) << "one for all pipelines";
  EXPECT_EQ(pooled.links[1].bandwidth, alone) << "inside a datacenter";
  EXPECT_EQ(pooled.links[2].bandwidth, Bandwidth{2 * alone.bits_per_second()});
}

TEST(ShareWan, GivesEveryPipelineItsRows) {
  const Scenario scenario = two_slots(4, 3, 3);  // cells of 2 and of 1
  const Schedule plain = generate("1f1b", scenario);
  const Schedule shared = in_cells(plain, scenario).or_throw();
  EXPECT_EQ(shared.name, "atlas+1f1b");
  EXPECT_EQ(shared.cell, 2);
  ASSERT_EQ(shared.rows.size(), 12U);
  for (std::size_t row = 0; row < shared.rows.size(); ++row)
    EXPECT_EQ(shared.rows[row], plain.rows[row % 4]);
  EXPECT_FALSE(in_cells(shared, scenario));
}

TEST(ShareWan, ChangesTheNameAloneWhereThereIsNothingToShare) {
  const Scenario scenario = two_slots(4, 3, 1);
  Schedule plain = generate("zb-h1", scenario);
  const Schedule shared = in_cells(plain, scenario).or_throw();
  plain.name = "atlas+zb-h1";
  EXPECT_EQ(shared, plain);
}

TEST(ShareWan, RefusesReplicasOfDifferentOrders) {
  const Scenario scenario = two_slots(2, 2, 2);
  Schedule plain = generate("1f1b", scenario);
  plain.rows.insert(plain.rows.end(), plain.rows.begin(), plain.rows.begin() + 2);
  EXPECT_FALSE(in_cells(plain, scenario));
}

TEST(ShareWan, TakesTurnsMicrobatchByMicrobatch) {
  const Scenario scenario = two_slots(2, 2, 3);
  Schedule shared = in_cells(generate("gpipe", scenario), scenario).or_throw();
  take_turns_evenly(shared, scenario);
  ASSERT_EQ(shared.link_orders.size(), 4U);  // two cells, both ways
  const auto message = [](int replica, BlockKind kind, int microbatch) {
    const int chunk = kind == BlockKind::F ? 0 : 1;
    return OrderedMessage{ReplicaId{replica},
                          {kind, 0, 1, ChunkId{chunk}, MicrobatchId{microbatch}}};
  };
  EXPECT_EQ(shared.link_orders[0].resource, "turns 0/0>1");
  const std::vector<OrderedMessage> down{message(0, BlockKind::F, 0), message(1, BlockKind::F, 0),
                                         message(0, BlockKind::F, 1), message(1, BlockKind::F, 1)};
  EXPECT_EQ(shared.link_orders[0].messages, down);
  EXPECT_EQ(shared.link_orders[3].resource, "turns 1/1>0");
  const std::vector<OrderedMessage> up{message(2, BlockKind::B, 0), message(2, BlockKind::B, 1)};
  EXPECT_EQ(shared.link_orders[3].messages, up);
}

}  // namespace
}  // namespace longhaul::schedule
