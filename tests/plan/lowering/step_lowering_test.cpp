#include "plan/lowering/step_lowering.hpp"

#include <gtest/gtest.h>

#include "plan/lowering/lanes.hpp"
#include "plan/lowering/lower_collective.hpp"

namespace longhaul::plan {
namespace {

/// Two ranks of one node.
Scenario two_ranks() {
  Scenario scenario = uniform_scenario(1, 1);
  scenario.parallel.replicas = 2;
  scenario.placement.assign(2, DatacenterId{0});
  NodeInterfaces& node = scenario.nodes.emplace_back();
  node.gpus = 2;
  node.device = 1_Gbps;
  return scenario;
}

const Collective kGather{CollectiveKind::all_gather, {Rank{0}, Rank{1}}, 4_MiB};

/// Two gathers one after the other, each rank's part of the second gated by `gate` where asked.
Plan two_gathers(int second_queue, StepLowering::Gates gates = StepLowering::Gates::sends) {
  const Scenario scenario = two_ranks();
  Plan plan;
  Network network{scenario, plan};
  StepLowering steps{plan, network, gates};
  steps.add(kGather, ChunkId{-1});
  steps.add(kGather, ChunkId{-1}, second_queue);
  std::vector<OpId> blocks;
  for (const Rank rank : ids<Rank>(2)) {
    plan.ranks.push_back(network.info(rank));
    blocks.push_back(
        op_at(plan, add_lane(plan, "compute", OpKind::compute, rank, kNone<Rank>, 1), 0));
    steps.lay_out(rank);
  }
  for (const Rank rank : ids<Rank>(2)) steps.gate(1, rank, blocks[index(rank)]);
  steps.fill();
  return plan;
}

std::size_t waits(const Plan& plan, const std::vector<OpId>& ops) {
  std::size_t count = 0;
  for (const OpId op : ops) count += plan.after_of(op).size();
  return count;
}

TEST(StepLowering, OnlyThoseOfOneQueueFollowEachOther) {
  const Plan one = two_gathers(0);
  const Plan two = two_gathers(1);
  EXPECT_EQ(two.lanes.size(), one.lanes.size() + 4);
  EXPECT_EQ(two.lanes[2].name, "send>1:1");
  EXPECT_EQ(waits(two, two.stepped[1].sends), 2U);  // the gates alone
  EXPECT_GT(waits(one, one.stepped[1].sends), 2U);
}

TEST(StepLowering, GatesHoldUpWhatComesInWhereAsked) {
  const Plan sends = two_gathers(1);
  EXPECT_EQ(waits(sends, sends.stepped[1].receives), 0U);
  const Plan both = two_gathers(1, StepLowering::Gates::both_sides);
  EXPECT_EQ(waits(both, both.stepped[1].receives), 2U);
}

TEST(StepLowering, AnExtendedNetworkKeepsItsResources) {
  const Scenario scenario = two_ranks();
  Plan plan = lower_collective(kGather, scenario).or_throw();
  const std::size_t resources = plan.resources.size();
  Network network = Network::extending(scenario, plan);
  const Route route = network.route(Rank{0}, Rank{1});
  EXPECT_EQ(plan.resources.size(), resources);
  EXPECT_EQ(plan.set_items[plan.set_begin[index(route.resources)]],
            plan.resources_of(plan.stepped[0].sends[0]).front());
  EXPECT_EQ(plan.resources[index(plan.resources_of(plan.stepped[0].sends[0]).front())].lanes, 2U);
}

}  // namespace
}  // namespace longhaul::plan
