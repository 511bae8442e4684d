#include <gtest/gtest.h>

#include "collective/iteration/iteration_memory.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "support/overlaps.hpp"
#include "support/random_iterations.hpp"

namespace longhaul::planner {
namespace {

using collective::IterationPlan;
using collective::IterationTimes;
using testing::planned_iteration;

/// By itself.
std::optional<SimulatedIteration> folded_alone(const IterationPlan& plan) {
  collective::FoldingMemo memo;
  return simulate_folded(plan, memo);
}

/// Everything that is said of every rank, to the nanosecond.
void expect_same_times(const IterationPlan& plan, const SimulatedIteration& folded) {
  const SimulatedIteration whole = simulate_all_ranks(plan).or_throw();
  const IterationTimes few{folded.lowered, folded.times};
  const IterationTimes all{whole.lowered, whole.times};
  EXPECT_LT(folded.lowered.plan.ops.size(), whole.lowered.plan.ops.size());
  EXPECT_EQ(few.makespan(), all.makespan());
  for (const Rank rank : ids<Rank>(plan.scenario->training_ranks())) {
    SCOPED_TRACE(number(rank));
    EXPECT_EQ(few.exposure(rank).communication, all.exposure(rank).communication);
    EXPECT_EQ(few.exposure(rank).exposed, all.exposure(rank).exposed);
    EXPECT_EQ(collective::peak_memory(plan, few, rank), collective::peak_memory(plan, all, rank));
    const auto& work = plan.stages[plan.base->ranks[index(rank)].device];
    for (std::uint32_t place = 0; place < work.order.size(); ++place) {
      ASSERT_EQ(few.operation(rank, place).start, all.operation(rank, place).start) << place;
      ASSERT_EQ(few.operation(rank, place).end, all.operation(rank, place).end) << place;
    }
    const auto spans = [&](const IterationTimes& times) {
      std::vector<std::tuple<collective::CommunicationId, Duration, Duration>> list;
      for (const collective::CommunicationSpan& each : times.communications(rank))
        list.emplace_back(each.of.communication, each.span.start, each.span.end);
      std::ranges::sort(list);
      return list;
    };
    ASSERT_EQ(spans(few), spans(all));
  }
}

Scenario small(const char* file, std::vector<std::string> set) {
  set.insert(set.end(), {"model.layers=2", "datacenter.gpus=64"});
  return scenario::load_scenario(testing::kShippedScenarios / file, set);
}

/// One level and two, shards alone and with copies, stages, tensor ranks.
std::vector<Scenario> foldable() {
  const char* const both = "centauri-fsdp-dp.toml";
  return {small(both, {"node.gpus=8", "parallel.replicas=8", "parallel.shard=8"}),
          small(both, {"node.gpus=2", "parallel.replicas=6", "parallel.shard=6"}),
          small(both, {"node.gpus=2", "parallel.replicas=8", "parallel.shard=4"}),
          small(both, {"node.gpus=4", "parallel.replicas=8", "parallel.shard=4",
                       "parallel.microbatches=2"}),
          small(both, {"node.gpus=2", "parallel.replicas=4", "parallel.shard=2",
                       "parallel.tensor=2", "parallel.microbatches=2", "parallel.stages=2"}),
          small(both, {"node.gpus=4", "parallel.replicas=4", "parallel.shard=2",
                       "parallel.tensor=2", "parallel.sequence_parallel=true",
                       "parallel.microbatches=3", "parallel.stages=2"})};
}

TEST(SimulateFolded, IsTheWholeToTheNanosecond) {
  int folds = 0, tried = 0;
  for (const Scenario& scenario : foldable()) {
    collective::FoldingMemo memo;  // of all overlaps: what one leaves must be right for the others
    for (const collective::Overlap& overlap : collective::overlaps()) {
      SCOPED_TRACE(fmt::format("{} of {}", overlap.name, scenario.training_ranks()));
      const IterationPlan plan = planned_iteration(scenario, overlap.name, "1f1b");
      const auto folded = simulate_folded(plan, memo);
      ++tried;
      if (!folded) continue;
      ++folds;
      expect_same_times(plan, *folded);
    }
  }
  EXPECT_GE(folds * 4, tried * 3) << folds << " of " << tried;
}

TEST(SimulateFolded, HoldsForRandomOrders) {
  int folds = 0, tried = 0;
  for (const Scenario& scenario : foldable()) {
    for (const char* overlap : {"ddp", "zero2", "fsdp2"}) {
      const IterationPlan plan = planned_iteration(scenario, overlap, "gpipe");
      for (std::uint64_t seed = 0; seed < 3; ++seed) {
        SCOPED_TRACE(fmt::format("{} of {}, seed {}", overlap, scenario.training_ranks(), seed));
        Random random{seed};
        IterationPlan shuffled = plan;
        for (collective::StageWork& work : shuffled.stages) testing::shuffle(work, 3, random);
        const auto folded = folded_alone(shuffled);
        ++tried;
        if (!folded) continue;
        ++folds;
        expect_same_times(shuffled, *folded);
      }
    }
  }
  EXPECT_GE(folds * 2, tried) << folds << " of " << tried;
}

/// Meshes and other algorithms than a ring: rings along a mesh turn, halving does not.
TEST(SimulateFolded, LooksAtTheMessagesOfOtherAlgorithms) {
  const Scenario scenario = foldable()[2];
  IterationPlan plan = planned_iteration(scenario, "fsdp2");
  for (collective::Communication& each : plan.stages[DeviceId{0}].communications)
    if (each.members == collective::Members::shard) {
      each.algorithm = plan::CollectiveAlgorithm::direct;
    }
  const auto folded = folded_alone(plan);
  ASSERT_TRUE(folded);
  expect_same_times(plan, *folded);
  IterationPlan uneven = plan;  // one member has a byte more than the others
  for (collective::Communication& each : uneven.stages[DeviceId{0}].communications)
    if (each.members == collective::Members::shard)
      each.size = Bytes{each.size.count() / scenario.parallel.shard * scenario.parallel.shard + 1};
  EXPECT_FALSE(folded_alone(uneven));
  for (collective::Communication& each : plan.stages[DeviceId{0}].communications)
    each.algorithm = plan::CollectiveAlgorithm::tree;
  const auto whole = simulate_iteration(plan);
  EXPECT_FALSE(whole && !whole->lowered.representative.empty());
}

/// A search gives up on what ends no earlier than what it has: never on what is faster.
TEST(SimulateFolded, GivesUpOnWhatEndsTooLateAlone) {
  int gave_up = 0;
  for (const Scenario& scenario : foldable()) {
    collective::FoldingMemo memo;
    for (const char* overlap : {"serial", "zero3", "fsdp2", "coconet"}) {
      const IterationPlan plan = planned_iteration(scenario, overlap, "1f1b");
      const auto whole = simulate_folded(plan, memo);
      if (!whole) continue;
      const Duration end = IterationTimes{whole->lowered, whole->times}.makespan();
      for (const Duration at : {end / 2, end - end / 10, end, end + 1ns}) {
        MakespanLimit limit{at};
        const auto ran = simulate_folded(plan, memo, &limit);
        ASSERT_TRUE(ran);
        EXPECT_TRUE(!limit.is_reached || end >= at) << overlap;
        EXPECT_TRUE(limit.is_reached || ran->times.size() == whole->times.size()) << overlap;
        EXPECT_TRUE(limit.is_reached || at != end / 2) << overlap;
        gave_up += limit.is_reached ? 1 : 0;
        if (limit.is_reached) continue;
        const IterationTimes times{ran->lowered, ran->times};
        EXPECT_EQ(times.makespan(), end) << overlap;
      }
    }
  }
  EXPECT_GE(gave_up, 24);
}

TEST(SimulateFolded, LeavesUnlikeRanksAlone) {
  // A node of two and one of one; a link that all share.
  EXPECT_FALSE(folded_alone(planned_iteration(
      small("centauri-fsdp-dp.toml", {"node.gpus=2", "parallel.replicas=3", "parallel.shard=3"}),
      "fsdp2")));
}

}  // namespace
}  // namespace longhaul::planner
