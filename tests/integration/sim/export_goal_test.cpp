#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "plan/export/export.hpp"
#include "plan/lowering/lower.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "sim/simulate.hpp"
#include "support/cells.hpp"
#include "support/goal.hpp"
#include "support/loggops.hpp"
#include "support/shipped.hpp"

namespace longhaul {
namespace {

using plan::GoalSimulator;
using ::testing::Contains;
using testing::Goal;
using testing::GoalOp;
using ::testing::HasSubstr;
using testing::LogGopsParameters;
using testing::LogGopsRules;
using testing::LogGopsSimulator;

std::string goal_text(const Plan& plan, GoalSimulator simulator = GoalSimulator::atlahs) {
  std::ostringstream out;
  plan::export_goal(plan, simulator, out);
  return out.str();
}

/// The op of the plan that an op of the file stands for; nullopt: a part of a ring.
std::optional<std::size_t> op_of(const GoalOp& op) {
  if (op.label.find_first_of("bsr") != std::string::npos) return std::nullopt;
  return std::stoul(op.label.substr(1));
}

LogGopsParameters parameters_of(const Plan& plan, GoalSimulator simulator, std::uint32_t ties = 1) {
  const auto parameters = plan::goal_parameters(plan, simulator);
  EXPECT_TRUE(parameters.has_value());
  if (!parameters) return {};
  return {parameters->latency.count(), parameters->per_byte, ties};
}

struct Compared {
  int blocks = 0;
  int arrivals = 0;
  int collectives = 0;
};

/// Blocks, arrivals and the ends of collectives as ATLAHS' rules give them, in whichever order it
/// takes ties: to the nanosecond ours. A ring's members may end before its last one, with which all
/// of them end here.
void expect_our_times_of_atlahs(const Plan& plan, Compared& compared) {
  const OpTimes times = sim::simulate(plan);
  const Goal goal = testing::GoalReader::read(goal_text(plan));
  for (const std::uint32_t ties : {1U, 2U}) {
    const auto played = LogGopsSimulator::play(goal, LogGopsRules::atlahs,
                                               parameters_of(plan, GoalSimulator::atlahs, ties));
    std::vector<std::int64_t> ring_end(plan.collectives.size());
    for (std::size_t i = 0; i < goal.ops.size(); ++i) {
      const auto op = op_of(goal.ops[i]);
      if (!op || plan.ops[*op].kind == OpKind::send) continue;
      if (plan.ops[*op].kind == OpKind::collective) {
        std::int64_t& end = ring_end[plan.ops[*op].match];
        end = std::max(end, played[i].end);
        continue;
      }
      ASSERT_EQ(played[i].end, times[*op].end.count()) << goal.ops[i].label;
      if (plan.ops[*op].kind == OpKind::recv) {
        ++compared.arrivals;
        continue;
      }
      ASSERT_EQ(played[i].start, times[*op].start.count()) << goal.ops[i].label;
      ++compared.blocks;
    }
    compared.collectives += static_cast<int>(plan.stepped.size());  // their receives, above
    for (std::size_t group = 0; group < ring_end.size(); ++group) {
      ASSERT_EQ(ring_end[group], times[index(plan.collectives[group].front())].end.count())
          << group;
      ++compared.collectives;
    }
  }
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

/// Cells of tables 5 and 6, and stages that differ.
TEST(ExportGoal, AtlahsTakesOurTimesOnPresets) {
  Compared compared;
  for (const std::string name : {"m70-2dc", "m70-4dc", "m70-2dc-hetero", "m70-16stage"}) {
    for (const auto& [latency, transfer] :
         {std::pair{"0.25", "0.25"}, std::pair{"2", "0"}, std::pair{"1", "2"}}) {
      const std::vector<std::string> ratios{std::string{"link.latency_ratio="} + latency,
                                            std::string{"link.transfer_ratio="} + transfer};
      Scenario scenario = scenario::load_scenario(
          testing::in_checkout("benchmarks/scenarios/") + name + ".toml", ratios);
      // Rings there take no whole number of ns: rounded to the nearest here, down by LogGOPSim.
      if (name == "m70-2dc-hetero") scenario.parallel.gradient_sync = GradientSync::none;
      for (const schedule::Generator& generator : schedule::generators()) {
        SCOPED_TRACE(::testing::Message()
                     << name << ", " << generator.name << ", " << latency << " " << transfer);
        const Schedule schedule = schedule::generate(generator.name, scenario);
        expect_our_times_of_atlahs(plan::lower(schedule, scenario), compared);
      }
    }
  }
  EXPECT_GT(compared.blocks, 100'000);
  EXPECT_GT(compared.arrivals, 50'000);
  EXPECT_GT(compared.collectives, 50);
}

// Some stages share a datacenter, others do not; a link between all pairs of datacenters.
TEST(ExportGoal, AtlahsTakesOurTimesOnRandomScenarios) {
  Compared compared;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random{seed};
    Scenario scenario = random_without_network(seed);
    scenario.parallel.gradient_sync = GradientSync::none;
    const Duration latency{random.between(0, 800)};
    std::ranges::fill(scenario.costs.message, Bytes{random.between(1, 300)});
    const auto datacenters = static_cast<int>(random.between(1, scenario.parallel.stages));
    scenario = spread(scenario, datacenters, latency, Duration{random.between(0, 500)});
    for (const schedule::Generator& generator : schedule::generators()) {
      SCOPED_TRACE(::testing::Message() << generator.name << ", seed " << seed);
      const Schedule schedule = schedule::generate(generator.name, scenario);
      if (schedule.cell > 1) continue;  // relays use links inside datacenters too, which differ
      expect_our_times_of_atlahs(plan::lower(schedule, scenario), compared);
    }
  }
  EXPECT_GT(compared.blocks, 10'000);
  EXPECT_GT(compared.arrivals, 5'000);
}

TEST(ExportGoal, AtlahsTakesOurTimesWithoutANetwork) {
  Compared compared;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    const Scenario scenario = random_without_network(seed);
    for (const schedule::Generator& generator : schedule::generators()) {
      const Schedule schedule = schedule::generate(generator.name, scenario);
      for (const Arrangement arrangement : {Arrangement::decoupled, Arrangement::grouped}) {
        SCOPED_TRACE(::testing::Message() << generator.name << ", seed " << seed);
        expect_our_times_of_atlahs(plan::lower(schedule, scenario, arrangement), compared);
      }
    }
  }
  EXPECT_GT(compared.collectives, 1000);
}

// A ring over datacenters, a nanosecond for each byte of pieces without rest.
TEST(ExportGoal, AtlahsTakesOurTimesOfRings) {
  Compared compared;
  for (const GradientSync sync : {GradientSync::all_reduce, GradientSync::zero1}) {
    for (const std::string name : {"1f1b", "zb-h1", "zbv", "cross-bd"}) {
      SCOPED_TRACE(name);
      Scenario scenario = uniform_scenario(2, 4);
      scenario.parallel.gradient_sync = sync;
      std::ranges::fill(scenario.costs.weights, Bytes{1200});
      scenario = spread(scenario, 2, Duration{70}, Duration{});
      std::ranges::fill(scenario.costs.message, Bytes{30});
      for (Link& link : scenario.links) link.bandwidth = 8_Gbps;
      expect_our_times_of_atlahs(plan::lower(schedule::generate(name, scenario), scenario),
                                 compared);
    }
  }
  EXPECT_GT(compared.collectives, 0);
}

// The original knows one processor and no time of a byte on it: one rank a host, latency alone.
TEST(ExportGoal, TheOriginalTakesOurTimesOfBlocksWhereMessagesTakeLatencyAlone) {
  int blocks = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random{seed};
    Scenario scenario = random_without_network(seed);
    scenario.parallel.gradient_sync = GradientSync::none;
    scenario =
        spread(scenario, scenario.parallel.stages, Duration{random.between(0, 800)}, Duration{});
    for (const schedule::Generator& generator : schedule::generators()) {
      SCOPED_TRACE(::testing::Message() << generator.name << ", seed " << seed);
      const Schedule schedule = schedule::generate(generator.name, scenario);
      if (schedule.cell > 1) continue;  // a relay would wait for the block that runs
      const Plan plan = plan::lower(schedule, scenario);
      const OpTimes times = sim::simulate(plan);
      const Goal goal = testing::GoalReader::read(goal_text(plan, GoalSimulator::loggopsim));
      const auto played = LogGopsSimulator::play(goal, LogGopsRules::original,
                                                 parameters_of(plan, GoalSimulator::loggopsim));
      for (std::size_t i = 0; i < goal.ops.size(); ++i) {
        if (goal.ops[i].kind != GoalOp::Kind::calc) continue;
        const std::size_t op = op_of(goal.ops[i]).value();
        ASSERT_EQ(played[i].start, times[op].start.count()) << goal.ops[i].label;
        ASSERT_EQ(played[i].end, times[op].end.count()) << goal.ops[i].label;
        ++blocks;
      }
    }
  }
  EXPECT_GT(blocks, 10'000);
}

TEST(ExportGoal, HasTheRelaysOfACell) {
  int relayed = 0;
  Compared compared;
  for (std::uint64_t seed = 0; seed < 25; ++seed) {
    Scenario scenario = random_without_network(seed);
    scenario.parallel.gradient_sync = GradientSync::none;
    const Plan plan = plan::lower(
        testing::in_cells(schedule::generate("gpipe", scenario), scenario, 2), scenario);
    expect_our_times_of_atlahs(plan, compared);
    for (const Op& op : plan.ops) relayed += op.leg != MessageLeg::whole ? 1 : 0;
  }
  EXPECT_GT(relayed, 500);
}

// A file says which parts it does not hold.
TEST(ExportGoal, RemarksOnReceivesThatWouldBeWaitedFor) {
  const std::vector<std::string> ratio{"link.latency_ratio=2"};
  const Scenario scenario =
      scenario::load_scenario(testing::in_checkout("benchmarks/scenarios/m70-2dc.toml"), ratio);
  const Plan plan =
      plan::lower(schedule::generate("1f1b", scenario), scenario, Arrangement::grouped);
  const OpTimes times = sim::simulate(plan);
  const Goal goal = testing::GoalReader::read(goal_text(plan));
  const auto played = LogGopsSimulator::play(goal, LogGopsRules::atlahs,
                                             parameters_of(plan, GoalSimulator::atlahs));
  const std::int64_t ours = std::ranges::max(times, {}, &OpTime::end).end.count();
  EXPECT_LT(std::ranges::max(played, {}, &LogGopsSimulator::Time::end).end, ours);
  EXPECT_THAT(plan::goal_remarks(plan, GoalSimulator::atlahs),
              Contains(HasSubstr("--comm grouped: LogGOPSim will not wait")));
}

}  // namespace
}  // namespace longhaul
