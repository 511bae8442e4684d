#include "support/bidirectional.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "schedule/block_costs.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/evaluator.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

/// Two copies of the model in one pipeline (CrossPipe figure 5, BD).
namespace longhaul {
namespace {

using enum BlockKind;
using testing::bidirectional_gpipe;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Block block(BlockKind kind, int chunk, int microbatch) {
  return {.kind = kind, .chunk = ChunkId{chunk}, .microbatch = MicrobatchId{microbatch}};
}

TEST(Copies, NumberTheirChunksOneBehindTheOther) {
  const Schedule schedule = testing::bidirectional_gpipe(3, 5);
  EXPECT_EQ(numbers(chunks_on(schedule, DeviceId{0})), (std::vector{0, 5}));
  EXPECT_EQ(numbers(chunks_on(schedule, DeviceId{1})),
            (std::vector{1, 4}));  // the middle holds one stage twice
  EXPECT_EQ(schedule.stage_of(ChunkId{5}), 2);
  EXPECT_TRUE(schedule.is_first(ChunkId{3}));
  EXPECT_TRUE(schedule.is_last(ChunkId{2}));
  EXPECT_TRUE(schedule.runs(ChunkId{4}, MicrobatchId{3}));
  EXPECT_FALSE(schedule.runs(ChunkId{4}, MicrobatchId{2}));
  EXPECT_EQ(schedule.microbatches_of(ChunkId{0}), 3);
  EXPECT_EQ(schedule.microbatches_of(ChunkId{3}), 2);
}

TEST(Copies, TwoMicrobatchesMeetWithoutWaiting) {
  // P = 2, M = 2, F = D = W = 100: device 0 runs F(0,0) while device 1 runs F of the other copy's
  // first chunk; both then swap. Each device has 6 blocks and never waits.
  const Schedule schedule = testing::bidirectional_gpipe(2, 2);
  EXPECT_THAT(schedule.rows[0], ElementsAre(block(F, 0, 0), block(F, 3, 1), block(D, 3, 1),
                                            block(W, 3, 1), block(D, 0, 0), block(W, 0, 0)));
  const auto result = test::evaluate(schedule, uniform_scenario(2, 2));
  ASSERT_TRUE(result);
  EXPECT_EQ(result->makespan, Duration{600});
}

TEST(Copies, AreValidForEveryPAndM) {
  for (int devices = 1; devices <= 7; ++devices) {
    for (int microbatches = 1; microbatches <= 9; ++microbatches) {
      SCOPED_TRACE(fmt::format("P {}, M {}", devices, microbatches));
      const Schedule schedule = testing::bidirectional_gpipe(devices, microbatches);
      Scenario scenario = uniform_scenario(devices, microbatches);
      scenario.memory.budget = 100;
      const auto wrong = schedule::first_violation(schedule, scenario);
      ASSERT_FALSE(wrong) << wrong->text;
      ASSERT_TRUE(test::evaluate(schedule, scenario));
      ASSERT_EQ(schedule::read_csv(schedule::write_csv(schedule), "x.csv", "x"), schedule);
    }
  }
}

TEST(Copies, ABlockBelongsToTheCopyOfItsMicrobatch) {
  Schedule schedule = testing::bidirectional_gpipe(2, 2);
  schedule.rows[0][0].microbatch = MicrobatchId{1};
  const auto wrong = schedule::first_violation(schedule);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->kind, schedule::ViolationKind::shape);
  EXPECT_THAT(wrong->text, HasSubstr("the microbatch runs in copy 1 of the model, chunks 2 to 3"));
}

TEST(Copies, HaveEqualNumbersOfChunks) {
  Schedule schedule = testing::bidirectional_gpipe(2, 2);
  schedule.copies = 3;
  const auto wrong = schedule::first_violation(schedule);
  ASSERT_TRUE(wrong);
  EXPECT_EQ(wrong->kind, schedule::ViolationKind::shape);
  EXPECT_THAT(wrong->text, HasSubstr("4 chunks in 3 copies"));
}

TEST(Copies, EveryMutationIsCaught) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random{seed};
    const Schedule schedule = testing::bidirectional_gpipe(static_cast<int>(random.between(2, 6)),
                                                           static_cast<int>(random.between(1, 9)));
    const std::size_t device = random.next() % schedule.rows.size();
    const std::size_t position = random.next() % schedule.rows[device].size();
    const Block moved = schedule.rows[device][position];
    Schedule mutated = schedule;
    std::vector<Block>& row = mutated.rows[device];
    row.push_back(moved);
    ASSERT_EQ(schedule::first_violation(mutated)->kind, schedule::ViolationKind::repeated_block)
        << seed;
    row.pop_back();
    row.erase(row.begin() + static_cast<std::ptrdiff_t>(position));
    ASSERT_EQ(schedule::first_violation(mutated)->kind, schedule::ViolationKind::missing_block)
        << seed;
    row.push_back(moved);
    if (moved.kind == F) {
      ASSERT_EQ(schedule::first_violation(mutated)->kind, schedule::ViolationKind::dependency)
          << seed;
    }
  }
}

TEST(Copies, DeadlocksAreFoundAsTheEvaluatorFindsThem) {
  int deadlocks = 0;
  int fine = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    Random random{seed};
    const int devices = static_cast<int>(random.between(2, 4));
    Schedule schedule = testing::bidirectional_gpipe(devices, 5);
    for (std::int64_t i = random.between(1, 20); i > 0; --i) {
      std::vector<Block>& row = schedule.rows[random.next() % schedule.rows.size()];
      const std::size_t at = random.next() % (row.size() - 1);
      std::swap(row[at], row[at + 1]);
    }
    const auto found = schedule::first_violation(schedule);
    if (found && found->kind == schedule::ViolationKind::dependency) continue;
    ++(found ? deadlocks : fine);
    ASSERT_EQ(found.has_value(), !test::evaluate(schedule, uniform_scenario(devices, 5))) << seed;
  }
  EXPECT_GT(deadlocks, 20);
  EXPECT_GT(fine, 20);
}

TEST(Copies, AChunkCostsAWholeStage) {
  const Schedule schedule = testing::bidirectional_gpipe(3, 2);
  Scenario scenario = uniform_scenario(3, 2);
  scenario.costs.forward = {Duration{10}, Duration{20}, Duration{30}};
  const schedule::BlockCosts costs{schedule, scenario};
  EXPECT_EQ(costs.duration(block(F, 2, 0)), Duration{30});
  EXPECT_EQ(costs.duration(block(F, 3, 1)), Duration{30});  // the other copy's first, on device 2
  EXPECT_EQ(costs.duration(block(F, 5, 1)), Duration{10});
  EXPECT_EQ(costs.memory(block(F, 5, 1)), scenario.costs.activation[0]);
}

TEST(Copies, FillADeviceWithTheWeightsOfBoth) {
  Scenario scenario = uniform_scenario(3, 2);
  scenario.costs.weights = {1_MiB, 2_MiB, 4_MiB};
  const auto memory = schedule::device_memory(testing::bidirectional_gpipe(3, 2), scenario);
  EXPECT_EQ(memory[0].weights, 5_MiB);
  EXPECT_EQ(memory[1].weights, 2_MiB);  // both copies meet here in one stage
  EXPECT_EQ(memory[2].gradients, 5_MiB);
  // ZeRO-1 divides what two devices hold by two, 6 times the weights otherwise.
  EXPECT_EQ(memory[0].optimizer, 15_MiB);
  EXPECT_EQ(memory[1].optimizer, 12_MiB);
  scenario.memory.fixed = {3_MiB, 5_MiB, 7_MiB};
  EXPECT_EQ(schedule::device_memory(testing::bidirectional_gpipe(3, 2), scenario)[0].weights,
            10_MiB);
}

TEST(Copies, ExchangeMessagesBothWays) {
  // Activations and gradients of either copy, each one buffer, in both directions of a boundary.
  const auto memory =
      schedule::device_memory(testing::bidirectional_gpipe(2, 2), uniform_scenario(2, 2));
  EXPECT_EQ(memory[0].buffers, 4_MiB);
}

TEST(Copies, StandInALineOfTheFile) {
  const std::string text = schedule::write_csv(testing::bidirectional_gpipe(2, 2));
  EXPECT_THAT(text, HasSubstr("# copies = 2\n"));
  EXPECT_THAT(text, HasSubstr("0F0,3F1,3I1,3W1,0I0,0W0\n"));
}

TEST(Copies, AreNothingForPyTorch) {
  try {
    (void)schedule::write_csv(testing::bidirectional_gpipe(2, 2), schedule::CsvFormat::pytorch);
    FAIL() << "written";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("it runs 2 copies of the model in one pipeline"));
  }
}

}  // namespace
}  // namespace longhaul
