#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "plan/export/export.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "sim/simulate.hpp"
#include "support/cells.hpp"
#include "support/goal.hpp"

namespace longhaul {
namespace {

using testing::Goal;
using testing::GoalOp;
using ::testing::HasSubstr;

std::string goal_text(const Plan& plan) {
  std::ostringstream out;
  plan::export_goal(plan, out);
  return out.str();
}

/// P 1..6, M 1..8, replicas, recomputation, parts; links that take no time.
Scenario random_without_network(std::uint64_t seed) {
  Random random{seed};
  const auto draw = [&](int low, int high) { return static_cast<int>(random.between(low, high)); };
  const int stages = draw(1, 6);
  Scenario scenario = uniform_scenario(stages, stages * draw(1, 2));
  scenario.parallel.replicas = draw(1, 3);
  scenario.parallel.gradient_sync =
      std::array{GradientSync::none, GradientSync::all_reduce, GradientSync::zero1,
                 GradientSync::two_datacenter}[static_cast<std::size_t>(draw(0, 3))];
  scenario.memory.recompute = draw(0, 3) == 0;
  for (auto* times : {&scenario.costs.forward, &scenario.costs.dgrad, &scenario.costs.wgrad,
                      &scenario.costs.backward, &scenario.costs.recompute}) {
    for (Duration& time : *times) time = Duration{draw(1, 500)};
  }
  return spread(scenario, draw(1, std::min(stages, 3)), Duration{}, Duration{});
}

TEST(ExportGoal, WritesTheTextOfTheFormat) {
  const Scenario scenario = uniform_scenario(2, 1);
  EXPECT_EQ(goal_text(plan::lower(schedule::generate("1f1b", scenario), scenario)),
            "num_ranks 2\n"
            "\n"
            "rank 0 {\n"
            "l0: calc 100\n"
            "l1: calc 200\n"
            "l2: send 1048576b to 1 tag 0 cpu 1 nic 1\n"
            "l3: recv 1048576b from 1 tag 0 cpu 2 nic 2\n"
            "l1 requires l3\n"
            "l1 requires l0\n"
            "l2 requires l0\n"
            "}\n"
            "\n"
            "rank 1 {\n"
            "l4: calc 100\n"
            "l5: calc 200\n"
            "l6: send 1048576b to 0 tag 0 cpu 2 nic 2\n"
            "l7: recv 1048576b from 0 tag 0 cpu 1 nic 1\n"
            "l4 requires l7\n"
            "l5 requires l4\n"
            "l6 requires l5\n"
            "}\n");
}

TEST(ExportGoal, EvaluatesToTheSimulatorsTimesWithoutANetwork) {
  int collectives = 0;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const Scenario scenario = random_without_network(seed);
    for (const schedule::Generator& generator : schedule::generators()) {
      const Schedule schedule = schedule::generate(generator.name, scenario);
      for (const Arrangement arrangement : {Arrangement::decoupled, Arrangement::grouped}) {
        SCOPED_TRACE(::testing::Message() << generator.name << ", seed " << seed);
        const Plan plan = plan::lower(schedule, scenario, arrangement);
        const OpTimes times = sim::simulate(plan);
        const testing::Goal goal = testing::GoalReader::read(goal_text(plan));
        const std::vector<std::int64_t> ends = testing::GoalEvaluator::ends(goal);
        std::size_t ops = 0;
        for (std::size_t i = 0; i < goal.ops.size(); ++i) {
          const std::string& label = goal.ops[i].label;
          if (label.find_first_of("bsr") != std::string::npos) continue;  // inside a ring
          ++ops;
          const std::size_t op = std::stoul(label.substr(1));
          // GOAL's sends do not wait until the other side has posted its receive.
          if (plan.ops[op].kind == OpKind::send && arrangement == Arrangement::grouped) continue;
          ASSERT_EQ(ends[i], times[op].end.count()) << label;
        }
        ASSERT_EQ(ops, plan.ops.size());
        collectives += static_cast<int>(plan.collectives.size());
      }
    }
  }
  EXPECT_GT(collectives, 1000);
}

TEST(ExportGoal, HasTheRelaysOfACell) {
  int relayed = 0;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    Scenario scenario = random_without_network(seed);
    scenario.parallel.gradient_sync = GradientSync::none;
    const Plan plan = plan::lower(
        testing::in_cells(schedule::generate("gpipe", scenario), scenario, 2), scenario);
    const OpTimes times = sim::simulate(plan);
    const testing::Goal goal = testing::GoalReader::read(goal_text(plan));
    const std::vector<std::int64_t> ends = testing::GoalEvaluator::ends(goal);
    ASSERT_EQ(ends.size(), plan.ops.size());
    for (std::size_t i = 0; i < goal.ops.size(); ++i) {
      const std::size_t op = std::stoul(goal.ops[i].label.substr(1));
      EXPECT_EQ(ends[i], times[op].end.count()) << goal.ops[i].label;
      if (plan.ops[op].leg != MessageLeg::whole) ++relayed;
    }
  }
  EXPECT_GT(relayed, 500);
}

// Where all pairs of ranks have equal links, LogGOPS is the model of links per pair: the file keeps
// the overlap of blocks, transfers and latencies.
TEST(ExportGoal, EvaluatesToTheSimulatorsTimesOnOneKindOfLink) {
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    Random random{seed};
    Scenario scenario = random_without_network(seed);
    scenario.parallel.gradient_sync = GradientSync::none;
    const Duration latency{random.between(0, 800)};
    std::ranges::fill(scenario.costs.message, Bytes{random.between(1, 300)});
    // A datacenter for each stage; a nanosecond for each byte.
    scenario = spread(scenario, scenario.parallel.stages, latency, Duration{});
    for (Link& link : scenario.links) link.bandwidth = 8_Gbps;
    for (const schedule::Generator& generator : schedule::generators()) {
      SCOPED_TRACE(::testing::Message() << generator.name << ", seed " << seed);
      const Schedule schedule = schedule::generate(generator.name, scenario);
      if (schedule.cell > 1) continue;  // relays use links inside datacenters too, which differ
      const Plan plan = plan::lower(schedule, scenario);
      const OpTimes times = sim::simulate(plan);
      const testing::Goal goal = testing::GoalReader::read(goal_text(plan));
      const auto ends = testing::GoalEvaluator::ends(goal, {latency.count(), 1});
      for (std::size_t i = 0; i < goal.ops.size(); ++i) {
        if (goal.ops[i].kind == testing::GoalOp::Kind::send) continue;
        ASSERT_EQ(ends[i], times[std::stoul(goal.ops[i].label.substr(1))].end.count())
            << goal.ops[i].label;
      }
    }
  }
}

TEST(ExportGoal, KeepsCommunicationOffTheProcessorThatComputes) {
  const Scenario scenario = random_without_network(3);
  for (const schedule::Generator& generator : schedule::generators()) {
    const Plan plan = plan::lower(schedule::generate(generator.name, scenario), scenario);
    const testing::Goal goal = testing::GoalReader::read(goal_text(plan));
    std::map<std::pair<int, int>, std::set<std::tuple<bool, int>>> users;  // of (rank, cpu)
    for (const testing::GoalOp& op : goal.ops) {
      if (op.kind == testing::GoalOp::Kind::calc) {
        EXPECT_TRUE(op.cpu == 0 || op.size == 0) << op.label;
        continue;
      }
      EXPECT_NE(op.cpu, 0);
      EXPECT_EQ(op.cpu, op.nic);
      users[{op.rank, op.cpu}].insert({op.kind == testing::GoalOp::Kind::send, op.peer});
    }
    for (const auto& [cpu, channels] : users) EXPECT_EQ(channels.size(), 1u) << generator.name;
    // The sender's number is charged on the receiver's side, so both must agree.
    for (const auto& [send, recv] : testing::matched_receives(goal))
      EXPECT_EQ(goal.ops[send].cpu, goal.ops[recv].cpu);
  }
}

TEST(ExportGoal, ARingMovesItsShareInEveryStep) {
  Scenario scenario = uniform_scenario(1, 1);
  scenario.parallel.replicas = 3;
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  scenario.costs.weights = {Bytes{10}};
  scenario = spread(scenario, 1, Duration{}, Duration{});
  const std::string text = goal_text(plan::lower(schedule::generate("1f1b", scenario), scenario));
  const testing::Goal goal = testing::GoalReader::read(text);
  int sends = 0;
  for (const testing::GoalOp& op : goal.ops) {
    if (op.kind != testing::GoalOp::Kind::send) continue;
    EXPECT_EQ(op.size, 4);  // a third of 10 bytes, rounded up
    EXPECT_EQ(op.peer, (op.rank + 1) % 3);
    ++sends;
  }
  EXPECT_EQ(sends, 3 * 4);  // twice 2 steps on each of 3 ranks
  EXPECT_THAT(text, HasSubstr("l2s1 requires l2r0\n"));
}

TEST(ExportGoal, SaysWhereTheFormatEnds) {
  const auto plan_of = [](int replicas, GradientSync sync) {
    Scenario scenario = uniform_scenario(2, 1);
    scenario.parallel.replicas = replicas;
    scenario.parallel.gradient_sync = sync;
    scenario = spread(scenario, 1, Duration{}, Duration{});
    return plan::lower(schedule::generate("1f1b", scenario), scenario);
  };
  // A ring takes two channels of a rank, however many ranks it has.
  EXPECT_NO_THROW((void)goal_text(plan_of(40, GradientSync::all_reduce)));
  Plan plan = plan_of(300, GradientSync::none);
  // Rank 0 talks to every other one.
  for (int peer = 1; peer < 300; ++peer) {
    Lane lane = plan.lanes.back();
    lane.kind = OpKind::send;
    lane.count = 0;
    lane.peer = Rank{0};
    lane.rank = Rank{peer};
    plan.lanes.push_back(lane);
  }
  try {
    (void)goal_text(plan);
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("256 processors a rank do not suffice"));
  }
}

}  // namespace
}  // namespace longhaul
