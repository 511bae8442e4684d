#include "scenario/reader/load.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Scenario parse(const std::string& text, const std::vector<std::string>& set = {}) {
  return parse_scenario(text, "dir/s.toml", set);
}

/// A scenario of `stages` stages in one place with these lines in [costs].
Costs costs_of(const std::string& lines, int stages = 2) {
  return parse(fmt::format("[parallel]\nstages = {}\nmicrobatches = 4\n[costs]\n{}", stages, lines))
      .costs;
}

TEST(Load, ReadsIntoHowManyPartsBlocksAreSplit) {
  const auto parallel = [](const std::string& parts) {
    return parse("[parallel]\nstages = 2\nmicrobatches = 4\nsub_blocks = " + parts +
                 "\n[costs]\nforward = \"1ms\"\ndgrad = \"1ms\"\nwgrad = \"1ms\"\nactivation = "
                 "\"1MiB\"\nmessage = \"1MiB\"")
        .parallel;
  };
  EXPECT_EQ(parallel("8").sub_blocks, 8);
  EXPECT_THROW((void)parallel("256"), Error);  // Block::parts is a byte
}

TEST(Load, ReadsAMinimalScenario) {
  const Scenario scenario = parse(joined(kLines));
  EXPECT_EQ(scenario.name, "s");
  EXPECT_EQ(scenario.text, joined(kLines));
  EXPECT_FALSE(scenario.model.has_value());
  EXPECT_EQ(scenario.parallel.stages, 2);
  EXPECT_EQ(scenario.parallel.microbatches, 4);
  EXPECT_EQ(scenario.parallel.replicas, 1);
  EXPECT_EQ(scenario.parallel.chunks, 2);
  EXPECT_EQ(scenario.parallel.sub_blocks, 4);
  EXPECT_EQ(scenario.parallel.gradient_sync, GradientSync::zero1);
  EXPECT_THAT(scenario.placement, ElementsAre(kWest, kEast));
  ASSERT_EQ(scenario.links.size(), 2U);
  for (const Link* link : {scenario.link(kWest, kEast), scenario.link(kEast, kWest)}) {
    ASSERT_NE(link, nullptr);
    EXPECT_EQ(link->latency, 10ms);
    EXPECT_TRUE(link->bandwidth.is_unlimited());
    EXPECT_EQ(link->sharing, Sharing::pair);
  }
  EXPECT_EQ(scenario.run.iterations, 5);
  EXPECT_EQ(scenario.run.warmup, 1);
}

TEST(Load, OneDatacenterIsTheDefault) {
  const Scenario scenario =
      parse("[parallel]\nstages = 3\nmicrobatches = 4\n[costs]\nforward = \"1ms\"");
  EXPECT_EQ(scenario.datacenters.size(), 1U);
  EXPECT_EQ(scenario.datacenters[0].name, "local");
  EXPECT_THAT(scenario.placement, ElementsAre(kWest, kWest, kWest));
}

TEST(LoadCosts, ForwardAloneStandsForAll) {
  const Costs costs = costs_of("forward = \"38ms\"");
  EXPECT_THAT(costs.forward, ElementsAre(38ms, 38ms));
  EXPECT_THAT(costs.dgrad, Each(38ms));
  EXPECT_THAT(costs.wgrad, Each(38ms));
  EXPECT_THAT(costs.recompute, Each(38ms));
  EXPECT_THAT(costs.backward, Each(76ms));
  EXPECT_THAT(costs.message, Each(1_MiB));
  EXPECT_THAT(costs.activation, Each(2_MiB));
  EXPECT_THAT(costs.weights, ElementsAre(0_B, 0_B));
}

TEST(LoadCosts, BackwardAloneIsHalved) {
  const Costs costs = costs_of("forward = \"38ms\"\nbackward = [\"67ns\", \"8ns\"]");
  EXPECT_THAT(costs.backward, ElementsAre(67ns, 8ns));
  EXPECT_THAT(costs.dgrad, ElementsAre(34ns, 4ns));
  EXPECT_THAT(costs.wgrad, ElementsAre(33ns, 4ns));
}

TEST(LoadCosts, BackwardLeavesTheOtherPart) {
  EXPECT_THAT(costs_of("forward = \"1ms\"\nbackward = \"9ms\"\ndgrad = \"5ms\"").wgrad, Each(4ms));
  EXPECT_THAT(costs_of("forward = \"1ms\"\nbackward = \"9ms\"\nwgrad = \"2ms\"").dgrad, Each(7ms));
}

TEST(LoadCosts, PartsAddUpToBackwardUnlessItIsGiven) {
  EXPECT_THAT(costs_of("forward = \"1ms\"\ndgrad = \"5ms\"\nwgrad = \"3ms\"").backward, Each(8ms));
  const Costs measured =
      costs_of("forward = \"1ms\"\ndgrad = \"5ms\"\nwgrad = \"3ms\"\nbackward = \"7ms\"");
  EXPECT_THAT(measured.backward, Each(7ms));
  EXPECT_THAT(measured.dgrad, Each(5ms));
}

TEST(LoadCosts, OverrideThoseOfAModel) {
  const std::string base =
      "[parallel]\nstages = 8\nmicrobatches = 16\n[model]\npreset = \"m70-measured\"\n[costs]\n";
  const Costs costs = parse(base + "dgrad = \"40ms\"\nmessage = \"1GiB\"").costs;
  EXPECT_THAT(costs.forward, Each(38ms));
  EXPECT_THAT(costs.dgrad, Each(40ms));
  EXPECT_THAT(costs.wgrad, Each(35ms));
  EXPECT_THAT(costs.backward, Each(75ms));
  EXPECT_THAT(costs.message, Each(1_GiB));
  EXPECT_GT(costs.weights[0], 1_GiB);
  EXPECT_THAT(parse(base).costs.backward, Each(67ms));
}

TEST(LoadModel, TakesDimensionsAndARate) {
  const Scenario scenario = parse(R"(
[parallel]
stages = 2
microbatches = 4
[model]
layers = 4
hidden = 1024
intermediate = 4096
heads = 8
sequence_length = 2048
microbatch_size = 2
achieved_flops = "100 TFLOP/s"
peak_flops = 312e12
)");
  ASSERT_TRUE(scenario.model.has_value());
  EXPECT_EQ(scenario.model->name, "custom");
  EXPECT_EQ(scenario.model->kv_heads, 8);
  EXPECT_EQ(scenario.model->achieved_flops, 1e14);
  EXPECT_EQ(scenario.model->peak_flops, 312e12);
  EXPECT_THAT(scenario.costs.message, Each(8_MiB));
  // 2 layers of 2*4096*(4*1024^2 + 3*1024*4096) + 2*4096*2048*1024 FLOPs in 1e14 a second
  EXPECT_THAT(scenario.costs.forward, Each(Duration{3'092'376}));
}

TEST(LoadModel, Llama3405bForwardOfAStageIs109Milliseconds) {
  const Scenario scenario =
      parse("[parallel]\nstages = 16\nmicrobatches = 32\n[model]\npreset = \"llama3-405b\"\n");
  EXPECT_NEAR(static_cast<double>(scenario.largest_forward().count()), 109e6, 0.5e6);
}

TEST(LoadPlacement, ReplicasMayLieApart) {
  const Scenario scenario = parse(R"(
parallel = {stages = 3, replicas = 2, microbatches = 4}
costs = {forward = "1ms", weights = "1MiB"}
datacenter = [{name = "west", replicas = [0]}, {name = "east", replicas = [1], gpus = 3}]
link = [{between = ["west", "east"]}]
)");
  EXPECT_THAT(scenario.placement, ElementsAre(kWest, kWest, kWest, kEast, kEast, kEast));
  EXPECT_EQ(scenario.datacenters[1].gpus, 3);
  EXPECT_EQ(scenario.datacenters[0].gpus, std::nullopt);
}

TEST(LoadPlacement, StagesMayBeRanges) {
  const Scenario scenario = parse(R"(
parallel = {stages = 6, microbatches = 4}
costs = {forward = "1ms"}
datacenter = [{name = "west", stages = "0-1, 3"}, {name = "east", stages = "2,4-5"}]
link = [{between = "all"}]
)");
  EXPECT_THAT(scenario.placement, ElementsAre(kWest, kWest, kEast, kWest, kEast, kEast));
}

TEST(LoadMemory, ReadsScalarsAndLists) {
  const std::string text = joined(kLines) + "[memory]\nbudget = 2\ncapacity = \"80GiB\"\n";
  const Scenario scenario =
      parse(text + "static = [\"1GiB\", \"2GiB\"]\nrecompute = true\n", {"costs.activation=4MiB"});
  EXPECT_EQ(scenario.memory.budget, 2.0);
  EXPECT_TRUE(scenario.memory.recompute);
  EXPECT_THAT(scenario.memory.capacity, ElementsAre(80_GiB, 80_GiB));
  EXPECT_THAT(scenario.memory.fixed, ElementsAre(1_GiB, 2_GiB));
  EXPECT_EQ(scenario.activation_budget(), 16_MiB);
}

TEST(LoadMemory, RecomputationIsFullSelectiveOrNone) {
  const std::string gpt = "[model]\npreset = \"175b\"\n[parallel]\nstages = 7\nmicrobatches = 8\n";
  const Scenario none = parse(gpt);
  const Scenario full = parse(gpt, {"memory.recompute=true"});
  const Scenario selective = parse(gpt, {"memory.recompute=selective"});
  EXPECT_FALSE(none.memory.recompute || none.model->selective_recompute);
  EXPECT_TRUE(full.memory.recompute && !full.model->selective_recompute);
  EXPECT_TRUE(!selective.memory.recompute && selective.model->selective_recompute);
  EXPECT_GT(selective.costs.backward, none.costs.backward);
  EXPECT_LT(selective.costs.activation, none.costs.activation);
  EXPECT_EQ(selective.costs.forward, none.costs.forward);
  const Scenario given = parse(gpt, {"memory.recompute=selective", "costs.dgrad=50ms"});
  EXPECT_EQ(given.costs.dgrad.front(), 50ms);  // has them in
  EXPECT_EQ(given.costs.activation, selective.costs.activation);
}

TEST(LoadMemory, RefusesSelectiveRecomputationOfUnknownLength) {
  const auto said = [](const std::string& more) {
    return complaint(joined(kLines) + "[memory]\nrecompute = \"selective\"\n", {more});
  };
  EXPECT_EQ(said("run.seed=1"),
            "s.toml:17:13: memory.recompute = \"selective\" needs [model], or costs.backward or "
            "dgrad with it in (nothing else tells how long attention's scores take). Add one of "
            "them.");
  EXPECT_EQ(said("costs.backward=90ms"), "accepted");
  EXPECT_EQ(
      complaint("[parallel]\nstages = 1\nmicrobatches = 2\n[memory]\nrecompute = \"selective\"\n"
                "[[operator]]\nname = \"a\"\nkind = \"attention\"\nforward = \"1ms\"\n"
                "dgrad = \"3ms\"\n"),
      "accepted");
  EXPECT_THAT(said("memory.recompute=scores"),
              HasSubstr("memory.recompute = \"scores\" is none of true, false and \"selective\""));
  EXPECT_THAT(said("memory.recompute=1"), HasSubstr("memory.recompute"));
}

TEST(LoadRun, ReadsEveryKey) {
  const std::string run =
      "[run]\niterations = 7\nwarmup = 0\nseed = 9\ntime_scale = 0.25\n"
      "noise = 0.02\nstragglers = [1, 1.5]\n";
  const auto read = parse(joined(kLines) + run).run;
  EXPECT_EQ(read.iterations, 7);
  EXPECT_EQ(read.warmup, 0);
  EXPECT_EQ(read.seed, 9U);
  EXPECT_EQ(read.time_scale, 0.25);
  EXPECT_EQ(read.noise, 0.02);
  EXPECT_THAT(read.stragglers, ElementsAre(1.0, 1.5));
  EXPECT_THAT(parse(joined(kLines) + "[run.stragglers]\n1 = 2.5\n").run.stragglers,
              ElementsAre(1.0, 2.5));
}

TEST(Load, MicrobatchesFollowFromTheGlobalBatch) {
  const auto loaded = [](const std::string& parallel) {
    return parse_scenario(
        "[model]\npreset = \"gpt-3.6b\"\nmicrobatch_size = 2\n[parallel]\n"
        "stages = 2\nreplicas = 3\n" +
            parallel,
        "s.toml");
  };
  EXPECT_EQ(loaded("global_batch = 48").parallel.microbatches, 8);
  const auto refused = [&](const std::string& parallel, const char* what) {
    try {
      (void)loaded(parallel);
      FAIL() << parallel;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(what));
    }
  };
  refused("global_batch = 50", "Take 48 or 54.");
  refused("global_batch = 5", "Take 6.");
  refused("global_batch = 48\nmicrobatches = 8", "both given");
  refused("", "parallel.microbatches");
}

}  // namespace
}  // namespace longhaul::scenario
