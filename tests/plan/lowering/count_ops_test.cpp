#include "plan/lowering/count_ops.hpp"

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/steps/collective_steps.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/random_scenario.hpp"
#include "support/cells.hpp"
#include "support/collectives.hpp"

namespace longhaul::plan {
namespace {

TEST(CountOps, IsWhatLoweringMakes) {
  int plans = 0, collectives = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    Scenario scenario = test::random_scenario(seed);
    scenario.parallel.gradient_sync = static_cast<GradientSync>(seed % 5);
    for (const schedule::Generator& generator : schedule::generators()) {
      const auto schedule = schedule::try_generate(generator, scenario);
      if (!schedule) continue;
      for (const Arrangement arrangement : every<Arrangement>()) {
        const auto plan = try_lower(*schedule, scenario, arrangement);
        if (!plan) continue;
        EXPECT_EQ(count_ops(*schedule, scenario), plan->ops.size())
            << seed << ' ' << generator.name << ' ' << to_string(arrangement);
        ++plans;
        collectives += plan->stepped.empty() && plan->collectives.empty() ? 0 : 1;
      }
    }
  }
  EXPECT_GT(plans, 500);
  EXPECT_GT(collectives, 100);
}

TEST(CountOps, CountsTheLegsOfRelays) {
  Scenario scenario = spread(uniform_scenario(4, 6), 2, Duration{100}, Duration{50});
  for (const int replicas : {2, 3, 4}) {
    scenario.parallel.replicas = replicas;
    scenario.placement.clear();
    for (int rank = 0; rank < scenario.ranks(); ++rank)
      scenario.placement.push_back(DatacenterId{rank % 4 / 2});
    const Schedule schedule =
        testing::in_cells(schedule::generate("1f1b", scenario), scenario, replicas);
    EXPECT_EQ(count_ops(schedule, scenario), lower(schedule, scenario).ops.size()) << replicas;
  }
}

TEST(CountOps, OfRingsIsTheNumberOfTheirMessages) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce})
    for (const int members : {2, 3, 8}) {
      const Collective ring = testing::flat(kind, members, Bytes{5}, CollectiveAlgorithm::ring);
      EXPECT_EQ(count_messages_of_ring(ring), steps_of(ring).messages.size());
    }
}

}  // namespace
}  // namespace longhaul::plan
