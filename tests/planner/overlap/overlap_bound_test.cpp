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

TEST(OverlapBound, HoldsForRandomOrdersAndPartitionsOfTheToy) {
  const IterationPlan plan = planned_iteration(centauri_toy(), "zero3");
  EXPECT_LE(shortest_of_random(plan, 2000, 12ms), 13ms);
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
