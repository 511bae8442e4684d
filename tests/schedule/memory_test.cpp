#include "schedule/memory.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/generators/generate.hpp"

namespace longhaul::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr std::int64_t kActivationBytes = std::int64_t{2} << 20;  // of uniform_scenario()

/// Peaks in activations of one stage.
std::vector<double> peaks(const Schedule& schedule, const Scenario& scenario) {
  std::vector<double> counts;
  for (const Bytes peak : peak_activation(schedule, scenario)) {
    counts.push_back(static_cast<double>(peak.count()) / kActivationBytes);
  }
  return counts;
}

TEST(PeakActivation, IsThatOfTheDefinitionsForFourStagesAndEightMicrobatches) {
  const Scenario scenario = uniform_scenario(4, 8);
  const auto of = [&](const char* name) { return peaks(generate(name, scenario), scenario); };
  EXPECT_THAT(of("gpipe"), ElementsAre(8, 8, 8, 8));
  EXPECT_THAT(of("1f1b"), ElementsAre(4, 3, 2, 1));
  EXPECT_THAT(of("interleaved-1f1b"), ElementsAre(5.5, 4.5, 3.5, 2.5));
  EXPECT_THAT(of("zb-h1"), ElementsAre(4, 3.5, 3, 2.5));
  EXPECT_THAT(of("zb-h2"), ElementsAre(7, 6, 5, 4));
  EXPECT_THAT(of("zbv"), ElementsAre(4, 4, 4, 4));
}

TEST(PeakActivation, CountsInputsAloneWhereChunksAreRecomputed) {
  Scenario scenario = uniform_scenario(4, 8);
  scenario.memory.recompute = true;  // an input is a message: half an activation here
  const Schedule schedule = generate("1f1b", scenario);
  EXPECT_THAT(peaks(schedule, scenario), ElementsAre(2.5, 2, 1.5, 1));
}

TEST(PeakActivation, TakesEachReplicaByItself) {
  Scenario scenario = uniform_scenario(2, 4);
  scenario.parallel.replicas = 2;
  scenario.placement.assign(4, DatacenterId{0});
  Schedule schedule = generate("1f1b", scenario);
  const Schedule other = generate("gpipe", scenario);
  schedule.rows.insert(schedule.rows.end(), other.rows.begin(), other.rows.end());
  EXPECT_THAT(peaks(schedule, scenario), ElementsAre(2, 1, 4, 4));
  EXPECT_THAT(over_budget(schedule, scenario), ElementsAre(0, 1));
  EXPECT_EQ(device_memory(schedule, scenario)[1].activations, Bytes{4 * kActivationBytes});
}

TEST(MemoryEffect, FollowsKindsChunksAndParts) {
  Scenario scenario = uniform_scenario(1, 1);
  scenario.costs.activation = {Bytes{101}};
  const Schedule schedule = generate("zbv", scenario);  // chunks of 51 and 50 bytes
  const auto effect = [&](Block block) {
    const MemoryEffect change = ActivationModel(schedule, scenario).effect(block);
    const MemoryEffect same = ActivationModel{schedule, scenario}.effect(block);
    EXPECT_EQ(change.at_start, same.at_start);
    EXPECT_EQ(change.at_end, same.at_end);
    return std::pair{change.at_start.count(), change.at_end.count()};
  };
  using enum BlockKind;
  using Change = std::pair<std::int64_t, std::int64_t>;
  EXPECT_EQ(effect({F, 0, 1, ChunkId{0}, MicrobatchId{0}}), (Change{51, 0}));
  EXPECT_EQ(effect({D, 0, 1, ChunkId{0}, MicrobatchId{0}}), (Change{0, -25}));
  EXPECT_EQ(effect({W, 0, 1, ChunkId{0}, MicrobatchId{0}}), (Change{0, -26}));
  EXPECT_EQ(effect({B, 0, 1, ChunkId{1}, MicrobatchId{0}}), (Change{0, -50}));
  EXPECT_EQ(effect({F, 0, 4, ChunkId{1}, MicrobatchId{0}}), (Change{50, 0}));
  EXPECT_EQ(effect({F, 3, 4, ChunkId{1}, MicrobatchId{0}}), (Change{0, 0}));
  EXPECT_EQ(effect({B, 0, 4, ChunkId{1}, MicrobatchId{0}}), (Change{0, 0}));
  EXPECT_EQ(effect({B, 3, 4, ChunkId{1}, MicrobatchId{0}}), (Change{0, -50}));
}

TEST(MemoryEffect, SplitsAnActivationIntoInputAndRestWithRecomputation) {
  Scenario scenario = uniform_scenario(2, 1);
  scenario.memory.recompute = true;
  scenario.costs.message = {Bytes{300}, Bytes{7}};
  scenario.costs.activation = {Bytes{1000}, Bytes{200}};
  const Schedule schedule = generate("1f1b", scenario);
  using enum BlockKind;
  EXPECT_EQ(
      ActivationModel(schedule, scenario).effect({F, 0, 1, ChunkId{0}, MicrobatchId{0}}).at_start,
      Bytes{300});
  EXPECT_EQ(
      ActivationModel(schedule, scenario).effect({R, 0, 1, ChunkId{0}, MicrobatchId{0}}).at_start,
      Bytes{700});
  EXPECT_EQ(
      ActivationModel(schedule, scenario).effect({B, 0, 1, ChunkId{0}, MicrobatchId{0}}).at_end,
      Bytes{-1000});
  // The input, 300 bytes from stage 0, cannot be more than the whole.
  EXPECT_EQ(
      ActivationModel(schedule, scenario).effect({F, 0, 1, ChunkId{1}, MicrobatchId{0}}).at_start,
      Bytes{200});
  EXPECT_EQ(
      ActivationModel(schedule, scenario).effect({R, 0, 1, ChunkId{1}, MicrobatchId{0}}).at_start,
      Bytes{0});
}

TEST(OverBudget, ComparesPeaksWithTheBudget) {
  Scenario scenario = uniform_scenario(4, 8);
  EXPECT_THAT(over_budget(generate("1f1b", scenario), scenario), IsEmpty());
  EXPECT_THAT(over_budget(generate("zb-h2", scenario), scenario), ElementsAre(0, 1, 2));
  scenario.memory.budget = 0.75;
  EXPECT_THAT(over_budget(generate("1f1b", scenario), scenario), ElementsAre(0));
}

TEST(OverBudget, DoesNotCountRoundingOfSharesAgainstASchedule) {
  Scenario scenario = uniform_scenario(4, 8);
  scenario.costs.activation.assign(4, Bytes{1'000'001});
  const Schedule schedule = generate("zbv", scenario);
  EXPECT_GT(peak_activation(schedule, scenario)[0], scenario.activation_budget());
  EXPECT_THAT(over_budget(schedule, scenario), IsEmpty());
}

TEST(DeviceNeed, AddsUpWhatADeviceHolds) {
  const Scenario scenario = uniform_scenario(4, 8);
  const auto memories = device_memory(generate("1f1b", scenario), scenario);
  ASSERT_EQ(memories.size(), 4U);
  EXPECT_EQ(memories[1].device, DeviceId{1});
  EXPECT_EQ(memories[1].weights, 8_MiB);
  EXPECT_EQ(memories[1].gradients, 8_MiB);
  EXPECT_EQ(memories[1].optimizer, 48_MiB);
  EXPECT_EQ(memories[1].activations, 6_MiB);
  EXPECT_EQ(memories[0].buffers, 2_MiB);  // one neighbour: activations out, gradients in
  EXPECT_EQ(memories[1].buffers, 4_MiB);
  EXPECT_EQ(memories[1].total(), Bytes{(8 + 8 + 48 + 6 + 4) << 20});
  EXPECT_TRUE(memories[1].fits());
}

// A third of a budget of 3 x 1000 bytes has no end: rounded down it would not do.
TEST(ActivationBudget, IsNamedInMillionthsRoundedUp) {
  Scenario scenario = uniform_scenario(3, 6);
  for (Bytes& activation : scenario.costs.activation) activation = Bytes{1'000'000'000};
  const Schedule one = generate("1f1b", scenario);
  EXPECT_EQ(least_budget(Bytes{1'000'000'000}, one, scenario), 0.333334);
  EXPECT_EQ(least_budget(Bytes{1'500'000'000}, one, scenario), 0.5);
  EXPECT_EQ(least_budget(Bytes{210'000'000}, one, scenario), 0.07);  // 0.07 x 10^6 > 70000
  EXPECT_EQ(least_budget(Bytes{210'000'001}, one, scenario), 0.070001);
  EXPECT_EQ(least_budget(Bytes{6'000'000'000}, one, scenario), 2);
}

// Two chunks a device may add two bytes by rounding for each activation held; the budget has them.
TEST(ActivationBudget, LeavesRoomForRounding) {
  Scenario scenario = uniform_scenario(2, 4);
  for (Bytes& activation : scenario.costs.activation) activation = Bytes{1000};
  const Schedule wave = generate("zbv", scenario);
  EXPECT_EQ(least_budget(Bytes{1004}, wave, scenario), 0.5);
  for (std::int64_t bytes = 5; bytes < 5000; bytes += 7) {
    scenario.memory.budget = least_budget(Bytes{bytes}, wave, scenario);
    ASSERT_GE(allowed_activation(wave, scenario), Bytes{bytes});
    // Half a byte is rounded up where a budget turns into bytes.
    scenario.memory.budget -= std::min(scenario.memory.budget, 0.0006);
    ASSERT_LT(allowed_activation(wave, scenario), Bytes{bytes});
  }
}

TEST(DeviceNeed, BuffersFollowThePlacementOfChunks) {
  const Scenario scenario = uniform_scenario(2, 4);
  const auto buffers = [&](const char* name, std::size_t device) {
    return device_memory(generate(name, scenario), scenario)[device].buffers;
  };
  EXPECT_EQ(buffers("zbv", 0), 4_MiB);  // both kinds of message, both ways, with device 1
  EXPECT_EQ(buffers("zbv", 1), 4_MiB);
  EXPECT_EQ(buffers("interleaved-1f1b", 0), 4_MiB);
  EXPECT_EQ(buffers("1f1b", 0), 2_MiB);
}

TEST(DeviceNeed, DividesTheOptimizerByZeRO1AndTakesStaticMemoryAsGiven) {
  Scenario scenario = uniform_scenario(2, 4);
  scenario.parallel.replicas = 3;
  scenario.placement.assign(6, DatacenterId{0});
  const Schedule schedule = generate("1f1b", scenario);
  EXPECT_EQ(device_memory(schedule, scenario)[0].optimizer, 16_MiB);
  scenario.parallel.gradient_sync = GradientSync::all_reduce;
  EXPECT_EQ(device_memory(schedule, scenario)[0].optimizer, 48_MiB);
  scenario.memory.fixed[1] = 5_MiB;
  scenario.memory.capacity[1] = 8_MiB;
  const DeviceNeed given = device_memory(schedule, scenario)[1];
  EXPECT_EQ(given.weights + given.gradients + given.optimizer, 5_MiB);
  EXPECT_EQ(given.total(), 9_MiB);
  EXPECT_FALSE(given.fits());
}

}  // namespace
}  // namespace longhaul::schedule
