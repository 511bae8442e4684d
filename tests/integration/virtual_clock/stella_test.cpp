// Replicas that exchange parts beside their blocks, on the engine: the times of the simulator.
#include <algorithm>

#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "played_plan.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/stella/random_stella.hpp"

namespace longhaul {
namespace {

TEST(PlayedStella, StreamsTakeThePredictedTime) {
  constexpr int kIterations = 4;
  bool some_took_a_version = false;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const Scenario scenario = testing::RandomStella{seed}.scenario();
    const Plan plan = plan::lower(schedule::generate("stella", scenario), scenario);
    const auto played = testing::play_stream(plan, {kIterations, {}}, {});
    sim::simulate_stream(plan, {kIterations, {}}, [&](const sim::StreamedIteration& done) {
      const OpResults& own = played.iterations[static_cast<std::size_t>(done.iteration)];
      for (std::size_t i = 0; i < own.times.size(); ++i)
        ASSERT_EQ(own.times[i].end, done.results.times[i].end)
            << "seed " << seed << " iteration " << done.iteration << " op " << i << " on lane "
            << plan.lane_of(OpId{static_cast<std::uint32_t>(i)}).name;
      auto versions = done.results.versions;
      if (versions.empty()) versions.resize(own.versions.size(), -1);  // no weak dependency
      EXPECT_EQ(own.versions, versions) << "seed " << seed;
      some_took_a_version |= std::ranges::count(versions, -1) < std::ssize(versions);
    });
  }
  EXPECT_TRUE(some_took_a_version);
}

}  // namespace
}  // namespace longhaul
