#include "planner/overlap/overlap_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/lowering/prove_collectives.hpp"
#include "planner/overlap/joint_search.hpp"
#include "planner/overlap/overlap_evaluator.hpp"
#include "schedule/validity/validity.hpp"
#include "support/overlaps.hpp"
#include "support/random_iterations.hpp"
#include "support/toy_oracle.hpp"

namespace longhaul::planner {
namespace {

using collective::IterationPlan;
using testing::centauri_toy;

FoundOverlap best_of(const Scenario& scenario, const char* schedule = "gpipe",
                     const OverlapBudget& budget = {}) {
  return best_overlap(schedule::generate(schedule, scenario), scenario, Arrangement::decoupled,
                      budget)
      .or_throw();
}

// 12.5 with the first gather in two pieces is known; in four its first quarter alone is exposed.
TEST(OverlapSearch, FindsTheShortestOfTheToy) {
  EXPECT_EQ(best_of(centauri_toy({"overlap.max_chunks=1"})).makespan, 13ms);
  EXPECT_EQ(best_of(centauri_toy({"overlap.max_chunks=2"})).makespan, 12'500us);
  const FoundOverlap four = best_of(centauri_toy());
  EXPECT_EQ(four.makespan, 12'250us);
  EXPECT_EQ(four.bound.lower_bound, 12ms);
  EXPECT_EQ(four.baselines.size(), 9U);
}

/// Never slower than what is held against it, and never below the bound.
void expect_certificate(const FoundOverlap& found, const char* name) {
  EXPECT_FALSE(found.baselines.empty()) << name;
  EXPECT_GE(found.makespan, found.bound.lower_bound) << name;
  for (const OverlapBaseline& each : found.baselines)
    if (each.fits) {
      EXPECT_LE(found.makespan, each.makespan) << name << ' ' << each.overlap;
    }
  const SimulatedIteration ran = simulate_all_ranks(found.plan).or_throw();
  const collective::IterationTimes times{ran.lowered, ran.times};
  EXPECT_EQ(times.makespan(), found.makespan) << name;
  EXPECT_FALSE(plan::why_collectives_wrong(ran.lowered.plan)) << name;
}

/// Shards in nodes and over them, copies, stages, tensor ranks, whole sums.
std::vector<Scenario> hybrids() {
  const auto with = [](std::vector<std::string> set) { return centauri_toy(set); };
  return {with({"parallel.replicas=4", "parallel.shard=4", "node.internal=500MB/s"}),
          with({"parallel.replicas=4", "parallel.microbatches=2", "node.internal=500MB/s"}),
          with({"parallel.stages=2", "parallel.microbatches=2", "costs.message=1MB",
                "node.internal=500MB/s"}),
          with({"parallel.gradient_sync=all-reduce", "parallel.shard=1", "parallel.replicas=4",
                "parallel.bucket=2MB", "node.internal=500MB/s"})};
}

TEST(OverlapSearch, IsNeverSlowerThanABaseline) {
  const OverlapBudget few{.evaluations = 150};
  for (const Scenario& scenario : hybrids()) {
    const Schedule schedule = schedule::generate("1f1b", scenario);
    expect_certificate(best_of(scenario, "1f1b", few), "best");
    expect_certificate(centauri_overlap(schedule, scenario, Arrangement::decoupled, few).or_throw(),
                       "centauri");
  }
}

/// With the baselines known, however early.
TEST(OverlapSearch, EndsWithTheBestSoFarWhenItIsToldTo) {
  const Scenario toy = centauri_toy();
  std::size_t last = 0;
  const OverlapBudget budget{.watch = [&](std::size_t evaluated) {
    last = evaluated;
    return evaluated >= 20;
  }};
  const FoundOverlap found = best_of(toy, "gpipe", budget);
  EXPECT_TRUE(found.is_stopped);
  EXPECT_EQ(found.evaluated, last);
  EXPECT_LE(found.evaluated, 20U);
  expect_certificate(found, "best");
  const FoundOverlap again = best_of(toy, "gpipe", {.watch = ended_at(found.evaluated)});
  EXPECT_EQ(again.decided, found.decided);
  EXPECT_EQ(again.makespan, found.makespan);
  const FoundOverlap baselines = best_of(toy, "gpipe", {.watch = ended_after(Duration{})});
  EXPECT_TRUE(baselines.is_stopped);
  EXPECT_LE(baselines.evaluated, baselines.baselines.size());
  const FoundOverlap done = best_of(toy, "gpipe", {.watch = ended_after(1h)});
  EXPECT_FALSE(done.is_stopped);
  EXPECT_GT(done.evaluated, 20U);
}

// 1 + 1 + 6 parts of 4 MB over two ranks, and one gathered unit with its gradients.
TEST(OverlapSearch, StaysWithinMemory) {
  const Scenario tight =
      centauri_toy({"costs.activation=1B", "costs.message=1B", "memory.capacity=20000000B"});
  const FoundOverlap found = best_of(tight);
  const bool any = std::ranges::any_of(found.baselines, &OverlapBaseline::fits);
  EXPECT_EQ(found.fits, found.peak <= Bytes{20'000'000});
  EXPECT_TRUE(found.fits || !any);
  const Scenario wide =
      centauri_toy({"costs.activation=1B", "costs.message=1B", "memory.capacity=40MB"});
  EXPECT_TRUE(best_of(wide).fits);
}

/// Every class of every variant partitioned at random: no deadlock, collectives that are right,
/// nothing below the bound.
TEST(OverlapSearch, DecidesAnythingWithoutDeadlock) {
  for (const Scenario& scenario : hybrids()) {
    const OverlapVariant variant =
        overlap_variant(schedule::generate("1f1b", scenario), scenario, Arrangement::decoupled)
            .or_throw();
    collective::FoldingMemo memo;
    for (std::uint64_t seed = 0; seed < 25; ++seed) {
      Random random{seed};
      OverlapDecisions decisions;
      for (const collective::CommunicationClass& each : variant.classes) {
        const auto options = partition_options(variant, each);
        decisions.partitions.push_back(options[testing::below(random, options.size())]);
      }
      decisions.order = every<GradientOrder>()[testing::below(random, 3)];
      decisions.ahead = static_cast<int>(testing::below(random, 4));
      const std::size_t lanes = testing::below(random, 2);
      decisions.lanes =
          lanes == 0 ? collective::ShardedLanes::one : collective::ShardedLanes::apart;
      const IterationPlan plan = decided(variant, decisions);
      const Result<SimulatedIteration> ran = simulate_all_ranks(plan);
      ASSERT_TRUE(ran) << "seed " << seed << ": " << ran.refusal().reason;
      EXPECT_FALSE(plan::why_collectives_wrong(ran->lowered.plan)) << "seed " << seed;
      const collective::IterationTimes times{ran->lowered, ran->times};
      EXPECT_GE(times.makespan(), variant.bound.lower_bound) << "seed " << seed;
      const std::optional<SimulatedIteration> folded = simulate_folded(plan, memo);
      if (!folded) continue;
      const collective::IterationTimes few{folded->lowered, folded->times};
      EXPECT_EQ(few.makespan(), times.makespan()) << "seed " << seed;
    }
  }
}

/// As many operators on two ranks, of whole microseconds and sizes that 2, 3 and 4 pieces divide.
struct ToyInstance {
  std::vector<testing::ToyOperator> operators;
  std::string text;
};
ToyInstance toy_instance(std::size_t count, std::int64_t overhead, Random& random) {
  ToyInstance made;
  made.text = fmt::format(
      "[parallel]\nstages = 1\nmicrobatches = 1\nreplicas = 2\ngradient_sync = \"zero3\"\n"
      "shard = 2\nunit = \"operator\"\nregather = \"all-but-last\"\n"
      "[overlap]\nsplit_overhead = \"{}ns\"\n"
      "[[datacenter]]\nname = \"local\"\n"
      "[[node]]\ndatacenter = \"local\"\ngpus = 2\ndevice = \"1GB/s\"\n",
      overhead);
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t forward = 12'000 * random.between(2, 30);
    const std::int64_t dgrad = 12'000 * random.between(2, 30);
    const std::int64_t wgrad = 12'000 * random.between(2, 30);
    const std::int64_t gather = 12'000 * random.between(1, 20);
    made.operators.push_back({forward, dgrad, wgrad, gather});
    made.text += fmt::format(
        "[[operator]]\nname = \"o{}\"\nkind = \"matmul\"\nweights = \"{}B\"\nforward = \"{}ns\"\n"
        "dgrad = \"{}ns\"\nwgrad = \"{}ns\"\n",
        i, 2 * gather, forward, dgrad, wgrad);
  }
  return made;
}

// Four operators in two or four pieces of each collective are 10^6 iterations.
TEST(OverlapSearch, IsAsGoodAsExhaustiveSearch) {
  const std::vector<std::pair<std::size_t, std::vector<int>>> sizes{
      {1, {1, 2, 3, 4}}, {2, {1, 2, 3, 4}}, {3, {1, 4}}, {4, {1, 4}}};
  Random random{17};
  for (const auto& [count, pieces] : sizes) {
    for (const std::int64_t overhead : {0, 5'000}) {
      const ToyInstance toy = toy_instance(count, overhead, random);
      const Scenario scenario = scenario::parse_scenario(toy.text, "toy.toml");
      const std::int64_t shortest = testing::ToyOracle{toy.operators, pieces, overhead}.shortest();
      EXPECT_LE(best_of(scenario).makespan.count(), shortest)
          << count << " operators, " << overhead << " ns a piece\n"
          << toy.text;
    }
  }
}

/// Two stages or four, whose messages and collectives share ports, and a slow way between them.
std::vector<Scenario> pipelines() {
  const auto with = [](std::vector<std::string> set) { return centauri_toy(set); };
  return {with({"parallel.stages=2", "parallel.microbatches=3", "costs.message=2MB",
                "parallel.replicas=2", "node.gpus=4"}),
          with({"parallel.stages=2", "parallel.microbatches=3", "costs.message=4MB",
                "parallel.gradient_sync=all-reduce", "parallel.shard=1", "node.gpus=1"}),
          with({"parallel.stages=2", "parallel.microbatches=4", "costs.message=1MB",
                "parallel.gradient_sync=zero1", "parallel.shard=1", "node.gpus=1"})};
}

/// Orders of blocks and overlaps together: never slower than any order with its own best overlap,
/// in a plan that is right.
TEST(JointOverlap, IsNeverSlowerThanTheOrdersThatItStartsFrom) {
  const OverlapBudget few{.evaluations = 120};
  for (const Scenario& scenario : pipelines()) {
    std::vector<Schedule> orders;
    Duration fastest = Duration::max();
    for (const char* name : {"1f1b", "gpipe", "zb-h1"}) {
      orders.push_back(schedule::generate(name, scenario));
      fastest = std::min(fastest, best_of(scenario, name, few).makespan);
    }
    const FoundOverlap joint =
        joint_overlap(orders, scenario, Arrangement::decoupled, few).or_throw();
    EXPECT_LE(joint.makespan, fastest);
    expect_certificate(joint, "joint");
    EXPECT_FALSE(schedule::first_violation(*joint.plan.schedule));
  }
}

/// Whatever its name: a file has the name of what it was written from.
TEST(JointOverlap, IsOfSchedulesThatASearchMade) {
  const Scenario scenario = pipelines().front();
  Schedule given = schedule::generate("gpipe", scenario);
  given.name = "best";
  const auto found = [&](const OverlapLimits& limits) {
    return searched_overlap("best", given, scenario, Arrangement::decoupled, limits, ended_at(2000))
        .or_throw();
  };
  const FoundOverlap alone =
      best_overlap(given, scenario, Arrangement::decoupled, {.watch = ended_at(2000)}).or_throw();
  EXPECT_EQ(found({}).plan.schedule->rows, alone.plan.schedule->rows);
  EXPECT_EQ(found({}).decided, alone.decided);
  EXPECT_EQ(found({}).evaluated, alone.evaluated);
  EXPECT_GT(found({.orders_too = true}).evaluated, alone.evaluated) << "other orders, too";
}

/// The same plan again from its number of iterations, as a trace of a search that was stopped.
TEST(JointOverlap, EndsWhereItIsToldTo) {
  const Scenario scenario = pipelines().front();
  const std::vector<Schedule> orders{schedule::generate("1f1b", scenario),
                                     schedule::generate("gpipe", scenario)};
  const auto ended = [&](std::size_t evaluated) {
    return joint_overlap(orders, scenario, Arrangement::decoupled, {.watch = ended_at(evaluated)})
        .or_throw();
  };
  const FoundOverlap once = ended(150), again = ended(once.evaluated);
  EXPECT_TRUE(once.is_stopped);
  EXPECT_EQ(again.makespan, once.makespan);
  EXPECT_EQ(again.evaluated, once.evaluated);
  EXPECT_EQ(again.plan.schedule->rows, once.plan.schedule->rows);
}

}  // namespace
}  // namespace longhaul::planner
