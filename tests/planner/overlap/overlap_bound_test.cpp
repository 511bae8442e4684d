#include "planner/overlap/overlap_bound.hpp"

#include <gtest/gtest.h>

#include "planner/overlap/evaluate_overlap.hpp"
#include "support/overlaps.hpp"
#include "support/random_iterations.hpp"

namespace longhaul::planner {
namespace {

using collective::IterationPlan;
using testing::centauri_toy;
using testing::planned_iteration;

TEST(OverlapBound, IsTheWorkOfTheToy) {
  const OverlapBound bound = bound_of_overlaps(planned_iteration(centauri_toy(), "zero3"));
  EXPECT_EQ(bound.lower_bound, 12ms);
  EXPECT_EQ(bound.reason, "work of stage 0");
}

// Five times 1 MB out of a port of 0.1 GB/s, but for a byte for each piece of a collective.
TEST(OverlapBound, IsWhatMustLeaveAPort) {
  const OverlapBound bound =
      bound_of_overlaps(planned_iteration(centauri_toy({"node.device=100MB/s"}), "zero3"));
  EXPECT_EQ(bound.lower_bound, 50ms);
  EXPECT_EQ(bound.reason, "9.537 MiB that all ranks send at 1.6 Gbps");
}

TEST(OverlapBound, CountsTheForwardsOfTheStagesBefore) {
  const Scenario scenario =
      centauri_toy({"parallel.stages=2", "parallel.microbatches=3", "costs.message=1B"});
  const OverlapBound bound = bound_of_overlaps(planned_iteration(scenario, "zero3"));
  EXPECT_EQ(bound.lower_bound, 2ms + 3 * 6ms);
  EXPECT_EQ(bound.reason, "work of stage 1 after the stages before it");
}

/// The shortest of many orders and partitions.
Duration shortest_of_random(const IterationPlan& plan, int count, Duration bound) {
  Duration shortest = Duration::max();
  for (int seed = 0; seed < count; ++seed) {
    Random random{static_cast<std::uint64_t>(seed)};
    IterationPlan shuffled = plan;
    for (collective::StageWork& work : shuffled.stages) testing::shuffle(work, 4, random);
    const Result<SimulatedIteration> ran = simulate_iteration(shuffled);
    if (!ran) {
      ADD_FAILURE() << "seed " << seed << ": " << ran.refusal().reason;
      continue;
    }
    const Duration makespan = collective::IterationTimes{ran->lowered, ran->times}.makespan();
    EXPECT_GE(makespan, bound) << "seed " << seed;
    shortest = std::min(shortest, makespan);
  }
  return shortest;
}

/// Three operators on each two ranks whose gathers take 4 ms each, forwards 1 ms, backwards 20 ms.
Scenario gathers_before_work(int replicas, int microbatches) {
  std::string text = fmt::format(
      "[parallel]\nstages = 1\nmicrobatches = {}\nreplicas = {}\ngradient_sync = \"zero3\"\n"
      "shard = 2\nunit = \"operator\"\nregather = \"once\"\n[overlap]\nmax_chunks = 2\n"
      "[[datacenter]]\nname = \"local\"\n"
      "[[node]]\ndatacenter = \"local\"\ngpus = 2\ndevice = \"1GB/s\"\n",
      microbatches, replicas);
  for (const char* name : {"first", "second", "third"})
    text += fmt::format(
        "[[operator]]\nname = \"{}\"\nkind = \"matmul\"\nweights = \"8MB\"\nforward = \"1ms\"\n"
        "dgrad = \"10ms\"\nwgrad = \"10ms\"\n",
        name);
  return scenario::parse_scenario(text, "gathers.toml");
}

// No backward begins before 12 MB have come into a rank, but for a byte for each piece.
TEST(OverlapBound, IsTheWorkAfterTheFirstGathers) {
  for (const int replicas : {2, 4}) {  // other copies of the weights gather theirs
    const IterationPlan plan = planned_iteration(gathers_before_work(replicas, 1), "zero3");
    const OverlapBound bound = bound_of_overlaps(plan);
    EXPECT_NEAR(static_cast<double>(bound.lower_bound.count()), 72e6, 20);
    EXPECT_EQ(bound.reason,
              "11.44 MiB of weights into rank 0 at 8 Gbps, and the work of stage 0 after them");
    EXPECT_LT(shortest_of_random(plan, 200, bound.lower_bound), 120ms);
  }
  const IterationPlan two = planned_iteration(gathers_before_work(2, 2), "zero3", "1f1b");
  shortest_of_random(two, 100, bound_of_overlaps(two).lower_bound);
}

TEST(OverlapBound, HoldsForRandomOrdersAndPartitionsOfTheToy) {
  const IterationPlan plan = planned_iteration(centauri_toy(), "zero3");
  EXPECT_LE(shortest_of_random(plan, 2000, 12ms), 13ms);
}

/// 48 GPUs of 6 nodes, whose copies of the weights lie on two nodes, on one, or on half of one.
TEST(OverlapBound, HoldsWhereCopiesLieOnNodes) {
  for (const char* shard : {"16", "8", "4"}) {
    for (const char* batch : {"1", "2", "4"}) {
      const std::vector<std::string> set{"model.layers=3", std::string{"parallel.shard="} + shard,
                                         std::string{"model.microbatch_size="} + batch};
      const Scenario scenario =
          scenario::load_scenario(testing::kShippedScenarios / "centauri-fsdp-dp.toml", set);
      for (const char* overlap : {"zero3", "fsdp2", "zeropp"}) {
        const IterationPlan plan = planned_iteration(scenario, overlap);
        const SimulatedIteration ran = simulate_iteration(plan).or_throw();
        EXPECT_GE((collective::IterationTimes{ran.lowered, ran.times}.makespan()),
                  bound_of_overlaps(plan).lower_bound)
            << shard << ' ' << batch << ' ' << overlap;
      }
    }
  }
}

/// Rates of whole nanoseconds a byte, so that no time is rounded.
TEST(OverlapBound, HoldsForRandomOrdersOfEverySharding) {
  const std::vector<std::string> hybrid{"parallel.replicas=4", "parallel.shard=2",
                                        "parallel.microbatches=2", "node.gpus=2",
                                        "node.internal=500MB/s"};
  for (const char* overlap : {"ddp", "zero1", "zero2", "zero3", "fsdp2"}) {
    for (const char* rate : {"1GB/s", "125MB/s"}) {
      std::vector<std::string> set = hybrid;
      set.push_back(std::string{"node.device="} + rate);
      const IterationPlan plan = planned_iteration(centauri_toy(set), overlap);
      const OverlapBound bound = bound_of_overlaps(plan);
      SCOPED_TRACE(std::string{overlap} + " at " + rate + ": " + bound.reason);
      EXPECT_GT(bound.lower_bound, 0ms);
      EXPECT_LT(shortest_of_random(plan, 60, bound.lower_bound), 4 * bound.lower_bound);
    }
  }
}

}  // namespace
}  // namespace longhaul::planner
