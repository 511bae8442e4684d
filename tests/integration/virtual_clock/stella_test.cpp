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

/// Did some block take a version?
bool expect_the_predicted_times(const Scenario& scenario) {
  constexpr int kIterations = 4;
  bool some_took_a_version = false;
  const Plan plan = plan::lower(schedule::generate("stella", scenario), scenario);
  const auto played = testing::play_stream(plan, {kIterations, {}}, {});
  sim::simulate_stream(plan, {kIterations, {}}, [&](const sim::StreamedIteration& done) {
    const OpResults& own = played.iterations[static_cast<std::size_t>(done.iteration)];
    for (std::size_t i = 0; i < own.times.size(); ++i)
      ASSERT_EQ(own.times[i].end, done.results.times[i].end)
          << "iteration " << done.iteration << " op " << i << " on lane "
          << plan.lane_of(OpId{static_cast<std::uint32_t>(i)}).name;
    auto versions = done.results.versions;
    if (versions.empty()) versions.resize(own.versions.size(), -1);  // no weak dependency
    EXPECT_EQ(own.versions, versions);
    some_took_a_version |= std::ranges::count(versions, -1) < std::ssize(versions);
  });
  return some_took_a_version;
}

TEST(PlayedStella, StreamsTakeThePredictedTime) {
  bool some_took_a_version = false;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE(seed);
    some_took_a_version |= expect_the_predicted_times(testing::RandomStella{seed}.scenario());
  }
  EXPECT_TRUE(some_took_a_version);
}

/// Gradients and weights hold the ports of their node's GPUs, or take no time; one buffer or two.
TEST(PlayedStella, StreamsOfNodesTakeThePredictedTime) {
  int played = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    testing::RandomStella random{seed};
    if (!random.into_nodes()) continue;
    Scenario scenario = random.scenario();
    scenario.train.buffers = static_cast<int>(random.random.between(1, 2));
    for (NodeInterfaces& nodes : scenario.nodes) {
      if (random.random.between(0, 2) > 0) continue;
      nodes.device = Bandwidth::unlimited();
      nodes.device_latency = {};
    }
    (void)expect_the_predicted_times(scenario);
    ++played;
  }
  EXPECT_GT(played, 15);
}

}  // namespace
}  // namespace longhaul
