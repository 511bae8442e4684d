// Replicas of a node that have one sum and one step (train.gather), as a stream: times by hand.
#include <chrono>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/stream_report.hpp"
#include "scenario/reader/load.hpp"
#include "sim/simulate.hpp"
#include "support/stella/stella_plan.hpp"

namespace longhaul {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::plan_of;

/// Four replicas of one part, in two sites of a node each: ports of 300 MB in 20 ms.
Scenario in_two_nodes(const std::vector<std::string>& set = {}) {
  const std::string text =
      "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 4\ngradient_sync = \"compressed\"\n"
      "[costs]\nforward = \"30ms\"\nbackward = \"60ms\"\nweights = \"300MB\"\n"
      "[train]\ngather = \"node\"\nmessage = \"25MB\"\n"
      "[train.costs]\ngather = \"5ms\"\ncompress = \"2ms\"\nmerge = \"3ms\"\noptimize = \"4ms\"\n"
      "copy_in = \"1ms\"\n"
      "[[datacenter]]\nname = \"east\"\nreplicas = \"0-1\"\n"
      "[[datacenter]]\nname = \"west\"\nreplicas = \"2-3\"\n"
      "[[node]]\ndatacenter = \"east\"\ngpus = 2\ndevice = \"120Gbps\"\n"
      "[[node]]\ndatacenter = \"west\"\ngpus = 2\ndevice = \"120Gbps\"\n"
      "[[link]]\nbetween = \"all\"\nlatency = \"5ms\"\nbandwidth = \"10Gbps\"\n";
  return scenario::parse_scenario(text, "s.toml", set);
}

// The gradient is there at 110 ms, the sum at 115, sets at 142, the step at 149; leaders have the
// weights at 150, members 20 ms later. From then on members are the last: 170 ms each.
TEST(GatheredNodes, NodesSumSendOnceAndStepOnce) {
  const Scenario scenario = in_two_nodes();
  const Plan plan = plan_of(scenario);
  std::map<std::string, Duration> ends;
  const OpTimes times = sim::simulate(plan);
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    const Lane& lane = plan.lane_of(OpId{i});
    Duration& end = ends[fmt::format("{} {}", index(lane.rank), lane.name)];
    end = std::max(end, times[i].end);
  }
  const std::map<std::string, Duration> expected{
      {"0 compute", 90ms},   {"0 host", 117ms},     {"0 host:update", 149ms},
      {"0 in", 150ms},       {"0 recv<1/0", 110ms}, {"0 recv<2/0", 142ms},
      {"0 send>1/0", 169ms}, {"0 send>2/0", 137ms}, {"1 compute", 90ms},
      {"1 in", 170ms},       {"1 recv<0/0", 169ms}, {"1 send>0/0", 110ms},
      {"2 compute", 90ms},   {"2 host", 117ms},     {"2 host:update", 149ms},
      {"2 in", 150ms},       {"2 recv<3/0", 110ms}, {"2 recv<0/0", 142ms},
      {"2 send>3/0", 169ms}, {"2 send>0/0", 137ms}, {"3 compute", 90ms},
      {"3 in", 170ms},       {"3 recv<2/0", 169ms}, {"3 send>2/0", 110ms}};
  EXPECT_EQ(ends, expected);
  EXPECT_EQ(report::busiest_way(plan), Bytes{25'000'000}) << "one set of each node";
  const report::StreamReport report = report::stream_report(plan, scenario, 4);
  EXPECT_THAT(report.iteration_start, ElementsAre(0ms, 150ms, 320ms, 490ms));
  EXPECT_EQ(
      report::stream_report(plan_of(in_two_nodes({"train.staleness=1"})), scenario, 12).period,
      90ms);
}

// Without a rate of [[node]] nothing inside a node takes time but its tasks.
TEST(GatheredNodes, NodesWithoutARateShareTheMemoryOfAHost) {
  Scenario scenario = in_two_nodes();
  for (NodeInterfaces& node : scenario.nodes) node.device = {};
  EXPECT_THAT(report::stream_report(plan_of(scenario), scenario, 3).iteration_start,
              ElementsAre(0ms, 130ms, 260ms));
}

// Of eight replicas in four nodes four exchange: of two sites two each.
TEST(GatheredNodes, SendAsManySetsAsThereAreNodes) {
  const auto wan = [](const std::string& exchange) {
    std::string text =
        "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 8\ngradient_sync = \"compressed\"\n"
        "[costs]\nforward = \"30ms\"\nweights = \"300MB\"\n[train]\nmessage = \"1kB\"\n"
        "gather = \"node\"\n[train.compress]\nexchange = \"" +
        exchange +
        "\"\n[[datacenter]]\nname = \"east\"\nreplicas = \"0-3\"\ngpus_per_node = 2\n"
        "[[datacenter]]\nname = \"west\"\nreplicas = \"4-7\"\ngpus_per_node = 2\n"
        "[[node]]\ndatacenter = \"east\"\n[[node]]\ndatacenter = \"west\"\n"
        "[[link]]\nbetween = \"all\"\nlatency = \"5ms\"\n";
    return report::busiest_way(plan_of(scenario::parse_scenario(text, "s.toml")));
  };
  EXPECT_EQ(wan("ring"), Bytes{3000});
  EXPECT_EQ(wan("direct"), Bytes{4000});
  EXPECT_EQ(wan("sites"), Bytes{1000});
}

// A split share is of the nodes: half of 1% of 75,000,000 numbers each, in 23,437 whole blocks of
// 16, 8 bytes a number. Gradients and weights have 4 bytes for all.
TEST(GatheredNodes, KeepTheShareOfANode) {
  Scenario scenario = in_two_nodes();
  scenario.train.message.reset();
  const Plan plan = plan_of(scenario);
  std::map<std::string, std::int64_t> sizes;
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i)
    if (plan.ops[i].kind == OpKind::send && plan.rank_of(OpId{i}) < Rank{2})
      sizes[fmt::format("{} {}", index(plan.rank_of(OpId{i})), plan.lane_of(OpId{i}).name)] =
          plan.ops[i].size.count();
  EXPECT_EQ(sizes, (std::map<std::string, std::int64_t>{{"0 send>1/0", 300'000'000},
                                                        {"0 send>2/0", 2'999'936},
                                                        {"1 send>0/0", 300'000'000}}));
}

// Two stages of four replicas, a pipeline's ranks beside each other: a node of four has two of each
// stage.
TEST(GatheredNodes, AreOfTheReplicasOfAStage) {
  std::vector<std::string> set{"parallel.stages=2", "parallel.microbatches=2", "costs.message=1kB",
                               "node.east.gpus=4", "node.west.gpus=4"};
  const Plan plan = plan_of(in_two_nodes(set), "1f1b");
  EXPECT_EQ(std::ranges::count(plan.lanes, "host", &Lane::name), 4) << "of each stage and node";
  EXPECT_EQ(std::ranges::count(plan.lanes, "in", &Lane::name), 8);
}

TEST(GatheredNodes, RefuseInOneLine) {
  const auto said = [](const std::vector<std::string>& set, const char* schedule = "stella") {
    try {
      (void)plan_of(in_two_nodes(set), schedule);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{"accepted"};
  };
  EXPECT_EQ(said({}), "accepted");
  EXPECT_THAT(said({"train.gather=host"}), HasSubstr("node"));
  EXPECT_THAT(said({"train.local_steps=4"}), HasSubstr("beside train.local_steps = 4"));
  EXPECT_THAT(said({"train.adapt.every=5"}), HasSubstr("beside train.adapt.every = 5"));
  EXPECT_THAT(said({"node.east.gpus=1", "node.west.gpus=1"}),
              HasSubstr("no two replicas of a stage lie in one node"));
  EXPECT_THAT(said({"parallel.stages=4", "parallel.microbatches=4", "costs.message=1kB"}, "1f1b"),
              HasSubstr("no two replicas of a stage lie in one node"));
  Scenario changed = in_two_nodes();
  changed.train.local_steps = changed.parallel.microbatches = 4;  // past the reader
  EXPECT_THROW((void)plan_of(changed), Error);
}

}  // namespace
}  // namespace longhaul
