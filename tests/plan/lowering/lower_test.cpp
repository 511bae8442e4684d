#include "plan/lowering/lower.hpp"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/generators/generate.hpp"
#include "support/plans.hpp"
#include "support/scenarios.hpp"

namespace longhaul::plan {
namespace {

using ::testing::ElementsAre;
using testing::find;
using ::testing::HasSubstr;

std::vector<std::string> lane_names(const Plan& plan, int rank) {
  std::vector<std::string> names;
  for (const Lane& lane : plan.lanes)
    if (lane.rank == Rank{rank}) names.push_back(lane.name);
  return names;
}

TEST(Lower, DecoupledHasALanePerRoleAndPeer) {
  const Scenario scenario = uniform_scenario(3, 4);
  const Plan plan = lower(schedule::generate("1f1b", scenario), scenario);
  EXPECT_THAT(lane_names(plan, 0), ElementsAre("compute", "send>1", "recv<1"));
  EXPECT_THAT(lane_names(plan, 1), ElementsAre("compute", "send>0", "send>2", "recv<0", "recv<2"));
  // Receives wait for nothing: they are posted from the start.
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    EXPECT_TRUE(plan.op(id).kind != OpKind::recv || plan.after_of(id).empty());
  }
}

TEST(Lower, MatchJoinsTheTwoSidesOfEveryMessage) {
  const Scenario scenario = uniform_scenario(4, 8);
  for (const Arrangement arrangement : {Arrangement::decoupled, Arrangement::grouped}) {
    const Plan plan = lower(schedule::generate("zbv", scenario), scenario, arrangement);
    int messages = 0;
    for (std::size_t i = 0; i < plan.ops.size(); ++i) {
      const OpId id{static_cast<std::uint32_t>(i)};
      const Op& op = plan.op(id);
      if (op.kind != OpKind::send) continue;
      const OpId other{op.match};
      EXPECT_EQ(plan.op(other).kind, OpKind::recv);
      EXPECT_EQ(plan.op(other).match, i);
      EXPECT_EQ(plan.rank_of(other), op.peer);
      EXPECT_EQ(plan.op(other).block(), op.block());
      ++messages;
    }
    // 8 chunks: 7 boundaries, of which one lies inside device 3; both ways, 8 microbatches.
    EXPECT_EQ(messages, 6 * 2 * 8);
  }
}

TEST(Lower, AWarmForwardWaitsForItsArrivalOnly) {
  const Scenario scenario = uniform_scenario(2, 2);
  const Plan plan = lower(schedule::generate("gpipe", scenario), scenario);
  const OpId forward = testing::find(plan, 1, OpKind::compute, BlockKind::F, 1);
  EXPECT_THAT(plan.after_of(forward),
              ElementsAre(testing::find(plan, 1, OpKind::recv, BlockKind::F, 1)));
  // The last stage's backward needs its own forward, which is before it on the same device.
  EXPECT_TRUE(plan.after_of(testing::find(plan, 1, OpKind::compute, BlockKind::B, 0)).empty());
}

TEST(Lower, GroupedPairsASendWithTheNextReceive) {
  // 1F1B, P = 2, M = 2: stage 0 runs F0 F1 B0 B1; after F1 it sends a1 and posts the receive of
  // g0.
  const Scenario scenario = uniform_scenario(2, 2);
  const Plan plan = lower(schedule::generate("1f1b", scenario), scenario, Arrangement::grouped);
  const OpId f0 = testing::find(plan, 0, OpKind::compute, BlockKind::F, 0);
  const OpId f1 = testing::find(plan, 0, OpKind::compute, BlockKind::F, 1);
  const OpId b0 = testing::find(plan, 0, OpKind::compute, BlockKind::B, 0);
  const OpId g0 = testing::find(plan, 0, OpKind::recv, BlockKind::B, 0);
  const OpId g1 = testing::find(plan, 0, OpKind::recv, BlockKind::B, 1);
  EXPECT_THAT(plan.after_of(testing::find(plan, 0, OpKind::send, BlockKind::F, 0)),
              ElementsAre(f0));
  EXPECT_TRUE(plan.after_of(f1).empty());           // a send does not block
  EXPECT_THAT(plan.after_of(g0), ElementsAre(f1));  // posted with a1, not earlier
  EXPECT_THAT(plan.after_of(b0), ElementsAre(g0));
  EXPECT_THAT(plan.after_of(g1), ElementsAre(b0));  // B0 sends nothing: posted when it is needed
}

TEST(Lower, GroupedPassesOverBlocksThatNeitherSendNorReceive) {
  // ZB-H1, stage 1 of 2: F0 D0 F1 (its W after it): the receive of F1's input goes with D0's send.
  const Scenario scenario = uniform_scenario(2, 4);
  const Schedule schedule = schedule::generate("zb-h1", scenario);
  const Plan plan = lower(schedule, scenario, Arrangement::grouped);
  const auto row = schedule.row(ReplicaId{0}, DeviceId{1});
  int passed_over = 0;
  for (std::size_t i = 2; i < row.size(); ++i) {
    if (row[i].kind != BlockKind::F || row[i - 1].kind != BlockKind::W) continue;
    ASSERT_EQ(row[i - 2].kind, BlockKind::D);
    EXPECT_THAT(
        plan.after_of(testing::find(plan, 1, OpKind::recv, BlockKind::F, row[i].microbatch)),
        ElementsAre(testing::find(plan, 1, OpKind::compute, BlockKind::D, row[i - 2].microbatch)));
    ++passed_over;
  }
  EXPECT_GT(passed_over, 0);
}

TEST(Lower, SplitsADevicesCostsOverItsChunks) {
  const Scenario scenario = uniform_scenario(2, 2, Duration{101});
  const Plan plan = lower(schedule::generate("interleaved-1f1b", scenario), scenario);
  const auto duration = [&](int chunk) {
    return plan.op(testing::find(plan, 0, OpKind::compute, BlockKind::F, 0, chunk)).duration;
  };
  EXPECT_EQ(duration(0), Duration{51});  // the remainder goes to the first
  EXPECT_EQ(duration(2), Duration{50});
}

TEST(Lower, SharedLinksAndInterfacesAreResourcesOfTheMessagesThatCross) {
  Scenario scenario = testing::replicas_on_a_shared_link(2, Duration{10}, Duration{60});
  scenario.nodes = {{DatacenterId{0}, 2, 5_Gbps, 4_Gbps}, {DatacenterId{1}, 1, 3_Gbps, 2_Gbps}};
  scenario.links[0].bandwidth = scenario.links[1].bandwidth = 10_Gbps;
  const Plan plan = lower(schedule::generate("gpipe", scenario), scenario);
  const auto held = [&](int rank) {
    std::vector<std::string> names;
    for (const ResourceId id :
         plan.resources_of(testing::find(plan, rank, OpKind::send, BlockKind::F, 0)))
      names.push_back(plan.resources[index(id)].name);
    return names;
  };
  // The narrowest of 10, 5 and 2 Gbps comes first.
  EXPECT_THAT(held(0), ElementsAre("ingress dc1/0", "egress dc0/0", "link dc0>dc1"));
  EXPECT_THAT(held(2), ElementsAre("ingress dc1/1", "egress dc0/0", "link dc0>dc1"));
  EXPECT_EQ(plan.op(testing::find(plan, 0, OpKind::send, BlockKind::F, 0)).duration,
            scenario.costs.message[0] / 2_Gbps);
}

TEST(Lower, NodesOfADatacenterHoldItsRanksInOrder) {
  Scenario scenario = uniform_scenario(4, 1);
  scenario = spread(scenario, 2, Duration{10}, Duration{60});
  scenario.nodes = {{DatacenterId{0}, 1, Bandwidth::unlimited(), Bandwidth::unlimited()}};
  const Plan plan = lower(schedule::generate("gpipe", scenario), scenario);
  const auto set = plan.resources_of(testing::find(plan, 1, OpKind::send, BlockKind::F, 0));
  ASSERT_EQ(set.size(), 2u);
  EXPECT_EQ(plan.resources[index(set[0])].name, "link 1>2");
  EXPECT_EQ(plan.resources[index(set[1])].name, "egress dc0/1");
}

TEST(Lower, RefusesMessagesBetweenUnlinkedDatacenters) {
  Scenario scenario = spread(uniform_scenario(2, 1), 2, Duration{10}, Duration{0});
  scenario.links.clear();
  try {
    (void)lower(schedule::generate("gpipe", scenario), scenario);
    FAIL() << "lowered without a link";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no link from dc0 to dc1 (rank 0 sends to rank 1)"));
  }
}

TEST(Lower, RefusesAScheduleOfAnotherShape) {
  const Schedule schedule = schedule::generate("gpipe", uniform_scenario(2, 3));
  EXPECT_THROW((void)lower(schedule, uniform_scenario(2, 4)), Error);
}

TEST(Lower, LinkOrdersMustNameEveryMessageOnce) {
  const Scenario scenario = spread(uniform_scenario(2, 2), 2, Duration{10}, Duration{60});
  Schedule schedule = schedule::generate("gpipe", scenario);
  const Block f0{};
  schedule.link_orders = {{"link 0>1", {{ReplicaId{0}, f0}}}};
  EXPECT_THROW((void)lower(schedule, scenario), Error);  // F1 is left out
  schedule.link_orders = {{"link 0>1", {{ReplicaId{0}, f0}, {ReplicaId{0}, f0}}}};
  EXPECT_THROW((void)lower(schedule, scenario), Error);
  const Block f1{BlockKind::F, 0, 1, ChunkId{0}, MicrobatchId{1}};
  schedule.link_orders = {{"link 0>1", {{ReplicaId{0}, f0}, {ReplicaId{0}, f1}}},
                          {"link 0>1", {{ReplicaId{0}, f1}, {ReplicaId{0}, f0}}}};
  EXPECT_THROW((void)lower(schedule, scenario), Error);  // one link, two orders
  schedule.link_orders = {{"link 0>7", {}}};
  EXPECT_THROW((void)lower(schedule, scenario), Error);
}

// Orders are of messages between stages: the steps of collectives take the link beside them.
TEST(Lower, LinkOrdersLeaveCollectivesOut) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  scenario.datacenters = {{"a", {}}, {"b", {}}};
  scenario.placement = {DatacenterId{0}, DatacenterId{1}, DatacenterId{1}, DatacenterId{0}};
  for (const int from : {0, 1})
    scenario.links.push_back(
        {DatacenterId{from}, DatacenterId{1 - from}, 10ns, 1_Gbps, Sharing::datacenter});
  Schedule schedule = schedule::generate("gpipe", scenario);
  schedule.link_orders = {{"link a>b", {}}};
  for (const int microbatch : {1, 0}) {
    const auto m = MicrobatchId{microbatch};
    schedule.link_orders[0].messages.push_back({ReplicaId{0}, {BlockKind::F, 0, 1, ChunkId{0}, m}});
    schedule.link_orders[0].messages.push_back({ReplicaId{1}, {BlockKind::B, 0, 1, ChunkId{1}, m}});
  }
  const Plan plan = lower(schedule, scenario);
  const auto link = std::ranges::find(plan.resources, "link a>b", &Resource::name);
  ASSERT_NE(link, plan.resources.end());
  EXPECT_EQ(link->order.size(), 4U);
  int steps = 0;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].kind != OpKind::send || !is_step(plan.ops[i])) continue;
    for (const ResourceId id : plan.resources_of(OpId{i}))
      steps += index(id) == to_size(link - plan.resources.begin()) ? 1 : 0;
  }
  EXPECT_GT(steps, 0);
}

TEST(Lower, AllReduceBehindTheLastGradientOfEachChunk) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  scenario.placement.assign(4, DatacenterId{0});
  const Plan plan = lower(schedule::generate("zbv", scenario), scenario);
  ASSERT_EQ(plan.stepped.size(), 4U);  // one per chunk
  for (const SteppedCollective& each : plan.stepped) {
    EXPECT_EQ(each.collective.kind, CollectiveKind::all_reduce);
    EXPECT_EQ(each.collective.members.size(), 2U);
    for (const OpId send : each.sends) {
      const auto after = plan.after_of(send);
      const auto last = std::ranges::find(after, OpKind::compute,
                                          [&](OpId before) { return plan.op(before).kind; });
      const StepMessage& step =
          each.steps->messages[to_size(std::ranges::find(each.sends, send) - each.sends.begin())];
      ASSERT_EQ(last == after.end(), step.left_before >= 0);  // the member's first message alone
      if (last == after.end()) continue;
      EXPECT_EQ(plan.op(*last).block_kind, BlockKind::W);
      EXPECT_EQ(plan.op(*last).chunk, each.chunk);
      EXPECT_EQ(plan.op(*last).microbatch, 1);
      EXPECT_EQ(plan.rank_of(*last), plan.rank_of(send));
    }
  }
}

}  // namespace
}  // namespace longhaul::plan
