#include <map>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/export/export.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "support/goal.hpp"

namespace longhaul::plan {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using testing::Goal;
using testing::GoalOp;
using ::testing::HasSubstr;

std::string goal_text(const Plan& plan, GoalSimulator simulator = GoalSimulator::atlahs) {
  std::ostringstream out;
  export_goal(plan, simulator, out);
  return out.str();
}

TEST(ExportGoal, WritesAHostForEachDatacenter) {
  const Scenario apart = spread(uniform_scenario(2, 1), 2, Duration{50}, Duration{});
  EXPECT_EQ(goal_text(lower(schedule::generate("1f1b", apart), apart)),
            "num_ranks 2\n"
            "\n"
            "rank 0 {\n"
            "l0: calc 100 cpu 0\n"
            "l1: calc 200 cpu 0\n"
            "l2: send 1048577b to 1 tag 0 cpu 1 nic 1\n"
            "l3: recv 1048577b from 1 tag 0 cpu 1 nic 0\n"
            "l1 requires l3\n"
            "l1 requires l0\n"
            "l2 requires l0\n"
            "}\n"
            "\n"
            "rank 1 {\n"
            "l4: calc 100 cpu 0\n"
            "l5: calc 200 cpu 0\n"
            "l6: send 1048577b to 0 tag 0 cpu 1 nic 1\n"
            "l7: recv 1048577b from 0 tag 0 cpu 1 nic 0\n"
            "l4 requires l7\n"
            "l5 requires l4\n"
            "l6 requires l5\n"
            "}\n");
  const Scenario together = uniform_scenario(2, 1);
  EXPECT_EQ(goal_text(lower(schedule::generate("1f1b", together), together)),
            "num_ranks 1\n"
            "\n"
            "rank 0 {\n"
            "l0: calc 100 cpu 0\n"
            "l1: calc 200 cpu 0\n"
            "l2: calc 0 cpu 2\n"
            "l3: calc 0 cpu 2\n"
            "l4: calc 100 cpu 1\n"
            "l5: calc 200 cpu 1\n"
            "l6: calc 0 cpu 2\n"
            "l7: calc 0 cpu 2\n"
            "l1 requires l3\n"
            "l1 requires l0\n"
            "l2 requires l0\n"
            "l3 requires l6\n"
            "l4 requires l7\n"
            "l5 requires l4\n"
            "l6 requires l5\n"
            "l7 requires l2\n"
            "}\n");
}

TEST(ExportGoal, WritesAHostForEachRankOfTheOriginal) {
  const Scenario scenario = uniform_scenario(2, 2);
  const std::string text =
      goal_text(lower(schedule::generate("gpipe", scenario), scenario), GoalSimulator::loggopsim);
  EXPECT_THAT(text, HasSubstr("num_ranks 2\n"));
  EXPECT_THAT(text, HasSubstr("l0: calc 100 cpu 0\n"));
  EXPECT_THAT(text, HasSubstr("l4: send 1048577b to 1 tag 0 cpu 0 nic 0\n"));
  EXPECT_THAT(text, HasSubstr("l5 requires l4\n"));  // the second send after the first one
  for (const GoalOp& op : testing::GoalReader::read(text).ops) {
    EXPECT_EQ(op.cpu, 0);
    EXPECT_EQ(op.nic, 0);
  }
}

TEST(ExportGoal, RemarksOnTheSimulatorsParameters) {
  Scenario scenario = spread(uniform_scenario(4, 2), 2, Duration{50}, Duration{});
  const auto remarks = [&](GoalSimulator simulator) {
    return goal_remarks(lower(schedule::generate("1f1b", scenario), scenario), simulator);
  };
  EXPECT_THAT(remarks(GoalSimulator::atlahs),
              ::testing::ElementsAre("LogGOPSim takes -L 50 -G 0 -o 0 -g 0 -O 0 -S 2147483647"));
  // Two stages of a datacenter are no longer nearer than others.
  EXPECT_THAT(remarks(GoalSimulator::loggopsim), Contains(HasSubstr("messages differ")));
  for (Link& link : scenario.links) link.bandwidth = 8_Gbps;
  EXPECT_THAT(remarks(GoalSimulator::loggopsim), Contains(HasSubstr("latency alone")));
  for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
  scenario.parallel.replicas = 2;
  scenario = spread(scenario, 2, Duration{50}, Duration{});
  for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
  EXPECT_THAT(remarks(GoalSimulator::atlahs), Contains(HasSubstr("share a link")));
  EXPECT_THAT(remarks(GoalSimulator::atlahs),
              ::testing::Not(Contains(HasSubstr("beside messages"))));
  scenario.overlap.wan = 2;
  EXPECT_THAT(remarks(GoalSimulator::atlahs), Contains(HasSubstr("beside messages")));
}

TEST(ExportGoal, KeepsCommunicationOffTheProcessorThatComputes) {
  for (const schedule::Generator& generator : schedule::generators()) {
    Scenario scenario = uniform_scenario(4, 8);
    scenario.parallel.replicas = 2;
    scenario.parallel.gradient_sync = GradientSync::zero1;
    scenario = spread(scenario, 2, Duration{50}, Duration{10});
    const Plan plan = lower(schedule::generate(generator.name, scenario), scenario);
    const Goal goal = testing::GoalReader::read(goal_text(plan));
    std::map<std::pair<int, int>, std::set<Rank>> computes;                   // of host, cpu
    std::map<std::pair<int, int>, std::set<std::pair<Rank, Rank>>> channels;  // of host, nic
    std::set<std::pair<int, int>> receives;                                   // host, nic
    for (const GoalOp& op : goal.ops) {
      if (op.label.find_first_of("bsr") != std::string::npos) continue;  // inside a ring
      const OpId id{static_cast<std::uint32_t>(std::stoul(op.label.substr(1)))};
      if (plan.op(id).kind == OpKind::compute) computes[{op.rank, op.cpu}].insert(plan.rank_of(id));
      if (op.kind == GoalOp::Kind::send)
        channels[{op.rank, op.nic}].insert({plan.rank_of(id), plan.op(id).peer});
      if (op.kind == GoalOp::Kind::recv) receives.insert({op.rank, op.nic});
    }
    for (const auto& [processor, ranks] : computes) EXPECT_EQ(ranks.size(), 1U) << generator.name;
    for (const auto& [interface, pairs] : channels) {
      EXPECT_EQ(pairs.size(), 1U) << generator.name;
      EXPECT_FALSE(receives.contains(interface)) << "a receive would wait for sends";
    }
    for (const GoalOp& op : goal.ops) {
      if (op.kind != GoalOp::Kind::calc) {
        EXPECT_FALSE(computes.contains({op.rank, op.cpu}));
      }
    }
  }
}

/// Three replicas of one stage, and 10 bytes of weights.
Scenario three_replicas(GradientSync sync) {
  Scenario scenario = uniform_scenario(1, 1);
  scenario.parallel.replicas = 3;
  scenario.parallel.gradient_sync = sync;
  scenario.costs.weights = {Bytes{10}};
  return spread(scenario, 1, Duration{}, Duration{});
}

TEST(ExportGoal, AnEstimateIsARingThatMovesItsShareInEveryStep) {
  const Scenario scenario = three_replicas(GradientSync::ring_rate);
  const std::string text =
      goal_text(lower(schedule::generate("1f1b", scenario), scenario), GoalSimulator::loggopsim);
  const Goal goal = testing::GoalReader::read(text);
  int sends = 0;
  for (const GoalOp& op : goal.ops) {
    if (op.kind != GoalOp::Kind::send) continue;
    EXPECT_EQ(op.size, 5);  // a third of 10 bytes, rounded up, and one
    EXPECT_EQ(op.peer, (op.rank + 1) % 3);
    ++sends;
  }
  EXPECT_EQ(sends, 3 * 4);  // twice 2 steps on each of 3 ranks
  EXPECT_THAT(text, HasSubstr("l2s1 requires l2r0\n"));
}

TEST(ExportGoal, HoldsTheStepsOfCollectives) {
  const Scenario scenario = three_replicas(GradientSync::all_reduce);
  const Goal goal = testing::GoalReader::read(
      goal_text(lower(schedule::generate("1f1b", scenario), scenario), GoalSimulator::loggopsim));
  std::vector<std::int64_t> of_rank_0;
  for (const GoalOp& op : goal.ops)
    if (op.kind == GoalOp::Kind::send && op.rank == 0) of_rank_0.push_back(op.size);
  // Of shards of 4, 3 and 3 bytes the ring sends 2, 1 as sums, then 0, 2; each with one more.
  EXPECT_THAT(of_rank_0, ElementsAre(4, 4, 5, 4));
  EXPECT_EQ(testing::matched_receives(goal).size(), 12U);
}

// A ring from west to east and back, twice: two hops of it join the same hosts.
TEST(ExportGoal, EveryMessageOfAPairOfHostsHasItsTag) {
  Scenario scenario = uniform_scenario(4, 4);
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = GradientSync::zero1;
  scenario = spread(scenario, 2, Duration{50}, Duration{10});
  const Plan plan = lower(schedule::generate("cross-bd", scenario), scenario);
  const auto matched = testing::matched_receives(testing::GoalReader::read(goal_text(plan)));
  EXPECT_GT(matched.size(), 100U);
}

TEST(ExportGoal, SaysWhereTheFormatEnds) {
  const auto plan_of = [](int replicas) {
    Scenario scenario = uniform_scenario(2, 1);
    scenario.parallel.replicas = replicas;
    scenario.parallel.gradient_sync = GradientSync::none;
    scenario = spread(scenario, 1, Duration{}, Duration{});
    return lower(schedule::generate("1f1b", scenario), scenario);
  };
  EXPECT_NO_THROW((void)goal_text(plan_of(127)));
  EXPECT_NO_THROW((void)goal_text(plan_of(128), GoalSimulator::loggopsim));
  try {
    (void)goal_text(plan_of(128));
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("has 257 processors"));
    EXPECT_THAT(error.what(), HasSubstr("--goal loggopsim"));
  }
}

}  // namespace
}  // namespace longhaul::plan
