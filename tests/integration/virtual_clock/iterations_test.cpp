// Iterations under an overlap, operators and collectives as messages: the engine takes what the
// simulator says.
#include <gtest/gtest.h>

#include "collective/iteration/iteration_text.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "played_plan.hpp"
#include "support/overlaps.hpp"
#include "support/random_iterations.hpp"

namespace longhaul {
namespace {

using collective::IterationPlan;
using testing::centauri_toy;
using testing::difference;
using testing::planned_iteration;

void expect_equal(const IterationPlan& plan, std::uint64_t order_seed = 0) {
  const planner::SimulatedIteration simulated = planner::simulate_all_ranks(plan).or_throw();
  testing::VirtualRun run;
  run.order_seed = order_seed;
  const auto played = testing::play(simulated.lowered.plan, {}, run);
  EXPECT_EQ(difference(simulated.lowered.plan, played.front().times, simulated.times), "");
}

/// Two nodes of two GPUs that hold two copies of the weights; some nanoseconds a message, so that
/// many events fall into one instant.
Scenario two_copies(std::vector<std::string> more = {}) {
  std::vector<std::string> set{"parallel.replicas=4", "parallel.shard=2", "parallel.microbatches=2",
                               "node.gpus=2", "node.internal=500MB/s"};
  set.insert(set.end(), more.begin(), more.end());
  return centauri_toy(set);
}

TEST(VirtualIterations, OfEveryOverlapTakeWhatTheSimulatorSays) {
  for (const collective::Overlap& overlap : collective::overlaps()) {
    SCOPED_TRACE(overlap.name);
    expect_equal(planned_iteration(two_copies(), overlap.name));
  }
}

TEST(VirtualIterations, WithStagesTakeIt) {
  const Scenario scenario = centauri_toy({"parallel.stages=2", "parallel.microbatches=3",
                                          "parallel.replicas=2", "costs.message=300kB"});
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1"})
    for (const char* overlap : {"serial", "zero3", "megatron"}) {
      SCOPED_TRACE(std::string{schedule} + " " + overlap);
      expect_equal(planned_iteration(scenario, overlap, schedule), 7);
    }
}

// Relays of pipelines that take turns on the WAN beside the collectives of their replicas.
TEST(VirtualIterations, WithTurnsOnTheWanTakeIt) {
  const std::vector<std::string> set{"parallel.microbatches=3"};
  const Scenario scenario =
      scenario::load_scenario(testing::in_checkout("benchmarks/scenarios/three-sites.toml"), set);
  for (const char* overlap : {"serial", "ddp"}) {
    SCOPED_TRACE(overlap);
    expect_equal(planned_iteration(scenario, overlap, "atlas"), 3);
  }
}

TEST(VirtualIterations, InRandomOrdersAndPiecesTakeIt) {
  int played = 0;
  for (const char* overlap : {"ddp", "zero2", "fsdp2"}) {
    const IterationPlan plan = planned_iteration(two_copies(), overlap);
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      SCOPED_TRACE(std::string{overlap} + ", seed " + std::to_string(seed));
      Random random{seed};
      IterationPlan shuffled = plan;
      for (collective::StageWork& work : shuffled.stages) testing::shuffle(work, 4, random);
      expect_equal(shuffled, seed);
      ++played;
    }
  }
  EXPECT_EQ(played, 36);
}

/// What one rank searched, as the others read it.
TEST(VirtualIterations, OfSearchedOverlapsTakeWhatTheSearchSays) {
  const Scenario scenario = two_copies();
  const Schedule schedule = schedule::generate("gpipe", scenario);
  for (const collective::Overlap& overlap : collective::searched_overlaps()) {
    SCOPED_TRACE(overlap.name);
    const planner::DecidedIteration decided =
        planner::decided_iteration(overlap, schedule, scenario).or_throw();
    const IterationPlan read =
        collective::read_iteration(collective::to_text(decided.plan), *decided.plan.schedule,
                                   scenario, Arrangement::decoupled)
            .or_throw();
    EXPECT_EQ(collective::lower_iteration(read).or_throw().plan.ops,
              collective::lower_iteration(decided.plan).or_throw().plan.ops);
    const planner::SimulatedIteration simulated = planner::simulate_all_ranks(read).or_throw();
    EXPECT_EQ(std::ranges::max_element(simulated.times, {}, &OpTime::end)->end,
              planner::evaluate_iteration(decided, "gpipe", overlap.name).or_throw().makespan);
    expect_equal(read);
  }
}

}  // namespace
}  // namespace longhaul
