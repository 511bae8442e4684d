#include <map>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "support/cells.hpp"
#include "support/plans.hpp"

namespace longhaul::plan {
namespace {

using testing::cell_of;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::in_cells;

std::vector<std::string> lanes_of_relays(const Plan& plan, int rank) {
  std::vector<std::string> names;
  for (const Lane& lane : plan.lanes)
    if (lane.rank == Rank{rank}) names.push_back(lane.name);
  return names;
}

std::vector<std::string> held(const Plan& plan, OpId id) {
  std::vector<std::string> names;
  for (const ResourceId resource : plan.resources_of(id))
    names.push_back(plan.resources[index(resource)].name);
  return names;
}

const Resource& resource(const Plan& plan, const std::string& name) {
  const auto at = std::ranges::find(plan.resources, name, &Resource::name);
  if (at == plan.resources.end()) fail("no resource {}", name);
  return *at;
}

/// GPipe on cell_of(replicas), in cells of two; two microbatches.
struct Cells {
  Scenario scenario;
  Schedule schedule;
  explicit Cells(int replicas = 2) : scenario{testing::cell_of(replicas, 61_B)} {
    scenario.parallel.microbatches = 2;
    schedule = testing::in_cells(schedule::generate("gpipe", scenario), scenario, 2);
  }
  [[nodiscard]] Plan plan() const { return lower(schedule, scenario); }
  LinkOrder& turns(const std::string& name) {
    return *std::ranges::find(schedule.link_orders, name, &LinkOrder::resource);
  }
  void expect_refused(const std::string& why) const {
    try {
      (void)lower(schedule, scenario);
      ADD_FAILURE() << "lowered, though " << why;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
};

TEST(Relays, HaveALaneForEachLegAndPeer) {
  const Plan plan = Cells{}.plan();
  EXPECT_THAT(lanes_of_relays(plan, 0), ElementsAre("compute", "scatter>2", "wan>1", "gather>2",
                                                    "scatter<2", "wan<1", "gather<2"));
  EXPECT_EQ(plan.cell, 2);
}

TEST(Relays, WanLanesKeepTheTurns) {
  Cells cells;
  auto& order = cells.turns("turns 0/0>1").messages;
  std::swap(order[0], order[1]);  // replica 1 first
  const Plan plan = cells.plan();
  for (const int rank : {0, 2}) {
    const auto lane = std::ranges::find_if(plan.lanes, [&](const Lane& l) {
      return l.rank == Rank{rank} && l.name.starts_with("wan>");
    });
    std::vector<std::pair<int, int>> sent;
    for (std::uint32_t i = 0; i < lane->count; ++i) {
      const OpId id{static_cast<std::uint32_t>(index(lane->first)) + i};
      sent.emplace_back(number(plan.owner_of(id)), plan.op(id).microbatch);
      EXPECT_EQ(plan.op(id).piece, rank / 2);
    }
    EXPECT_THAT(sent,
                ElementsAre(std::pair{1, 0}, std::pair{0, 0}, std::pair{0, 1}, std::pair{1, 1}));
  }
}

TEST(Relays, PiecesOfEveryMessageSumUpAndChain) {
  const Plan plan = Cells{3}.plan();
  std::map<std::tuple<int, bool, int>, Bytes> sums;
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    const OpId id{static_cast<std::uint32_t>(i)};
    const Op& op = plan.op(id);
    if (op.kind != OpKind::send) continue;
    EXPECT_EQ(plan.op(OpId{op.match}).size, op.size);
    ASSERT_EQ(plan.after_of(id).size(), 1u);
    const Op& before = plan.op(plan.after_of(id).front());
    const bool relay = plan.owner_of(id) != plan.ranks[index(plan.rank_of(id))].replica;
    EXPECT_EQ(before.kind, relay ? OpKind::recv : OpKind::compute) << to_text(plan, id);
    if (relay) {
      EXPECT_EQ(before.leg, op.leg == MessageLeg::gather ? MessageLeg::wan : MessageLeg::scatter);
      EXPECT_EQ(before.size, op.size);
      EXPECT_EQ(before.block(), op.block());
    }
    if (op.leg == MessageLeg::wan)
      sums[{number(plan.owner_of(id)), is_backward(op.block_kind), op.microbatch}] += op.size;
  }
  EXPECT_EQ(sums.size(), 3u * 2 * 2);
  for (const auto& [message, sum] : sums) EXPECT_EQ(sum, 61_B);
}

TEST(Relays, ABlockWaitsForAllPieces) {
  const Plan plan = Cells{}.plan();
  const auto waits = plan.after_of(testing::find(plan, 1, OpKind::compute, BlockKind::F, 0));
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(plan.op(waits[0]).leg, MessageLeg::wan);
  EXPECT_EQ(plan.op(waits[1]).leg, MessageLeg::gather);
}

TEST(Relays, MessagesInsideADatacenterStayWhole) {
  Scenario scenario = spread(uniform_scenario(4, 2), 2, Duration{50}, Duration{10});
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.placement.insert(scenario.placement.end(), scenario.placement.begin(),
                            scenario.placement.end());
  const Plan plan =
      lower(testing::in_cells(schedule::generate("1f1b", scenario), scenario, 2), scenario);
  EXPECT_THAT(lanes_of_relays(plan, 0), ElementsAre("compute", "send>1", "recv<1"));
  EXPECT_THAT(lanes_of_relays(plan, 1), Contains("wan>2"));
}

TEST(Relays, OrdersOnOtherResourcesNameWholeMessages) {
  Cells cells;
  for (NodeInterfaces& nodes : cells.scenario.nodes) nodes.egress = 6_Gbps;
  const auto message = [](int replica, int microbatch) {
    return OrderedMessage{ReplicaId{replica},
                          {BlockKind::F, 0, 1, ChunkId{0}, MicrobatchId{microbatch}}};
  };
  cells.schedule.link_orders.push_back(
      {"internal-out dc0/0", {message(1, 0), message(0, 1), message(0, 0)}});
  cells.expect_refused("orders F(chunk 0, microbatch 0) of replica 1 on \"internal-out dc0/0\"");
  cells.schedule.link_orders.back() = {
      "egress dc0/0", {message(1, 0), message(0, 1), message(0, 0), message(1, 1)}};
  const Plan plan = cells.plan();
  std::vector<std::tuple<int, int, int>> order;
  for (const OpId id : resource(plan, "egress dc0/0").order)
    order.emplace_back(number(plan.owner_of(id)), plan.op(id).microbatch, plan.op(id).piece);
  EXPECT_THAT(order, ElementsAre(std::tuple{1, 0, 0}, std::tuple{0, 1, 0}, std::tuple{0, 0, 0},
                                 std::tuple{1, 1, 0}));
}

// One link for all: both pieces of a message stand one after the other.
TEST(Relays, AnOrderHasThePiecesOfAMessageTogether) {
  Cells cells;
  for (Link& link : cells.scenario.links) link.sharing = Sharing::datacenter;
  LinkOrder order = cells.turns("turns 0/0>1");
  order.resource = "link dc0>dc1";
  order.kind = LinkOrderKind::resource;
  cells.schedule.link_orders.push_back(order);
  const Plan plan = cells.plan();
  std::vector<std::pair<ReplicaId, int>> pieces;
  for (const OpId id : resource(plan, "link dc0>dc1").order)
    pieces.emplace_back(plan.owner_of(id), plan.op(id).piece);
  ASSERT_EQ(pieces.size(), 8u);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i].first, order.messages[i / 2].replica);
    EXPECT_EQ(pieces[i].second, static_cast<int>(i % 2));
  }
}

TEST(Relays, RefuseTurnsThatAreNotWhatTheyShouldBe) {
  Cells missing;
  std::erase_if(missing.schedule.link_orders,
                [](const LinkOrder& order) { return order.resource == "turns 0/1>0"; });
  missing.expect_refused("does not state \"turns 0/1>0\" (replicas 0 to 1 share the WAN");
  Cells left_out;
  left_out.turns("turns 0/0>1").messages.pop_back();
  left_out.expect_refused("leaves 1 of 4 messages out of \"turns 0/0>1\"");
  Cells twice;
  twice.turns("turns 0/0>1").messages[1] = twice.turns("turns 0/0>1").messages[0];
  twice.expect_refused("listed twice");
  Cells unknown;
  unknown.turns("turns 0/0>1").messages[1].replica = ReplicaId{7};
  unknown.expect_refused("of replica 7 one of \"turns 0/0>1\"");
  Cells two_orders;
  two_orders.schedule.link_orders.push_back(two_orders.schedule.link_orders.front());
  two_orders.expect_refused("twice (the second order would contradict the first)");
  Cells unused;
  unused.schedule.link_orders.push_back(turns_order(5, DeviceId{0}, DeviceId{1}));
  unused.expect_refused("states \"turns 5/0>1\", which no message takes");
}

TEST(Relays, RefuseGroupedCommunicationAndCellsApart) {
  Cells cells;
  EXPECT_THROW((void)lower(cells.schedule, cells.scenario, Arrangement::grouped), Error);
  cells.scenario.placement[2] = DatacenterId{1};
  cells.expect_refused("device 0 of cell 0 lies in dc0 and in dc1 (replicas 0 and 1");
}

TEST(Network, NodesOfADatacenterShareTheirInternalInterfaces) {
  Scenario scenario = uniform_scenario(4, 1);
  NodeInterfaces nodes;
  nodes.gpus = 2;
  nodes.internal = 8_Gbps;
  scenario.nodes = {nodes};
  const Plan plan = lower(schedule::generate("gpipe", scenario), scenario);
  const OpId inside = testing::find(plan, 0, OpKind::send, BlockKind::F, 0);
  const OpId between = testing::find(plan, 1, OpKind::send, BlockKind::F, 0);
  EXPECT_THAT(held(plan, inside), ElementsAre("link 0>1"));
  EXPECT_EQ(plan.op(inside).duration, Duration{0});
  EXPECT_THAT(held(plan, between),
              ElementsAre("internal-out dc0/0", "link 1>2", "internal-in dc0/1"));
  EXPECT_EQ(plan.op(between).duration, scenario.costs.message[1] / 8_Gbps);
}

// 20 Gbps for all nodes together, 6 for each: three messages at a time.
TEST(Network, TheAggregateOfALinkCarriesSeveralMessages) {
  Scenario scenario = testing::cell_of(2, 60_B);
  for (NodeInterfaces& nodes : scenario.nodes) nodes.egress = 6_Gbps;
  for (Link& link : scenario.links) link.aggregate = 20_Gbps;
  const Plan plan = lower(schedule::generate("gpipe", scenario), scenario);
  const OpId id = testing::find(plan, 0, OpKind::send, BlockKind::F, 0);
  EXPECT_THAT(held(plan, id),
              ElementsAre("egress dc0/0", "link 0>1", "aggregate dc0>dc1", "ingress dc1/0"));
  EXPECT_EQ(resource(plan, "aggregate dc0>dc1").capacity, 3u);
  EXPECT_EQ(plan.op(id).duration, 60_B / 6_Gbps);
  for (Link& link : scenario.links) link.aggregate = 5_Gbps;  // less than one message could use
  const Plan slow = lower(schedule::generate("gpipe", scenario), scenario);
  EXPECT_EQ(resource(slow, "aggregate dc0>dc1").capacity, 1u);
  EXPECT_EQ(slow.op(testing::find(slow, 0, OpKind::send, BlockKind::F, 0)).duration, 60_B / 5_Gbps);
}

TEST(Network, RingsTakeTheInternalRateBetweenNodes) {
  Scenario scenario = uniform_scenario(1, 1);
  scenario.parallel.replicas = 2;
  scenario.placement.assign(2, DatacenterId{0});
  NodeInterfaces nodes;
  nodes.internal = 1_Gbps;
  scenario.nodes = {nodes};
  const auto duration = [&] {
    const Plan plan = lower(schedule::generate("1f1b", scenario), scenario);
    return plan.op(plan.stepped[0].sends[0]).duration;
  };
  EXPECT_EQ(duration(), 4_MiB / 1_Gbps);  // half of 8 MiB
  scenario.nodes[0].gpus = 2;             // both in one node
  EXPECT_EQ(duration(), Duration{0});
}

}  // namespace
}  // namespace longhaul::plan
