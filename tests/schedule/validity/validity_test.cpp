#include "schedule/validity/validity.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/generators/generate.hpp"

namespace longhaul::schedule {
namespace {

using enum BlockKind;
using ::testing::AllOf;
using ::testing::HasSubstr;

void expect_violation(const std::optional<Violation>& found, ViolationKind kind,
                      const ::testing::Matcher<const std::string&>& text) {
  ASSERT_TRUE(found) << "no violation";
  EXPECT_EQ(found->kind, kind) << found->text;
  EXPECT_THAT(found->text, text);
}

Schedule one_f_one_b(int stages, int microbatches) {
  return generate("1f1b", uniform_scenario(stages, microbatches));
}

TEST(FirstViolation, FindsNoneInAGoodSchedule) {
  EXPECT_FALSE(first_violation(one_f_one_b(4, 8), uniform_scenario(4, 8)));
}

TEST(FirstViolation, NamesWrongCounts) {
  using enum ViolationKind;
  expect_violation(first_violation(Schedule{}), shape, HasSubstr("0 devices"));
  Schedule schedule = one_f_one_b(2, 2);
  schedule.device_of_chunk = {DeviceId{0}, DeviceId{5}};
  expect_violation(first_violation(schedule), shape, HasSubstr("Chunk 1 lies on device 5"));
  schedule.device_of_chunk = {DeviceId{0}, DeviceId{0}};
  expect_violation(first_violation(schedule), shape, HasSubstr("No chunk lies on device 1"));
  schedule.device_of_chunk = {DeviceId{0}};
  expect_violation(first_violation(schedule), shape, HasSubstr("says where 1 of them lie"));
  schedule = one_f_one_b(2, 2);
  schedule.rows.emplace_back();
  expect_violation(first_violation(schedule), shape, HasSubstr("has 3 rows"));
  schedule = one_f_one_b(2, 2);
  schedule.devices = 2'000'000'000;
  schedule.chunks = 2'000'000'000;
  expect_violation(first_violation(schedule), shape, HasSubstr("has 2 rows"));
}

TEST(FirstViolation, NamesCellsThatCannotBe) {
  Schedule schedule = one_f_one_b(2, 2);
  schedule.replicas = 3;
  schedule.cell = 2;
  EXPECT_FALSE(first_violation(schedule));
  for (const int cell : {0, 4}) {
    schedule.cell = cell;
    expect_violation(first_violation(schedule), ViolationKind::shape,
                     HasSubstr("cells of " + std::to_string(cell) + " pipelines (1 to 3 are"));
  }
}

/// Two pipelines of two stages in a cell, one microbatch each; both ways take turns.
Schedule cell_of_two() {
  Schedule schedule = one_f_one_b(2, 1);
  schedule.replicas = 2;
  schedule.cell = 2;
  schedule.link_orders = {
      {turns_name(0, DeviceId{0}, DeviceId{1}),
       {{ReplicaId{0}, {F, 0, 1, ChunkId{0}, MicrobatchId{0}}},
        {ReplicaId{1}, {F, 0, 1, ChunkId{0}, MicrobatchId{0}}}},
       LinkOrderKind::turns},
      {turns_name(0, DeviceId{1}, DeviceId{0}),
       {{ReplicaId{0}, {B, 0, 1, ChunkId{1}, MicrobatchId{0}}},
        {ReplicaId{1}, {B, 0, 1, ChunkId{1}, MicrobatchId{0}}}},
       LinkOrderKind::turns},
  };
  return schedule;
}

TEST(FirstViolation, NamesTurnsThatAreNone) {
  EXPECT_FALSE(first_violation(cell_of_two()));
  const auto expect = [](const Schedule& schedule, const char* text) {
    expect_violation(first_violation(schedule), ViolationKind::shape, HasSubstr(text));
  };
  for (const char* name : {"turns 1/0>1", "turns 0/0-1", "turns 0/0>1 ", "turns "}) {
    Schedule schedule = cell_of_two();
    schedule.link_orders[0].resource = name;
    expect(schedule, "names no turns (\"turns CELL/FROM>TO\" is expected, with cells 0 to 0)");
  }
  Schedule schedule = cell_of_two();
  schedule.link_orders[0].messages[1].replica = ReplicaId{2};
  expect(schedule, "F(chunk 0, microbatch 0) of replica 2 (the replica is in another cell)");
  schedule = cell_of_two();
  schedule.link_orders[0].messages[1].producer.chunk = ChunkId{1};
  expect(schedule, "F(chunk 1, microbatch 0) of replica 1 (it sends nothing on)");
  schedule = cell_of_two();
  schedule.link_orders[0].messages[1].producer = {B, 0, 1, ChunkId{1}, MicrobatchId{0}};
  expect(schedule, "B(chunk 1, microbatch 0) of replica 1 (its message goes another way)");
  schedule = cell_of_two();
  schedule.link_orders[0].messages[1].producer.microbatch = MicrobatchId{7};
  expect(schedule, "(there is no such microbatch)");
}

TEST(FirstViolation, FindsADeadlockOverTurns) {
  // Replica 0 sends microbatch 1 after its gradient of 0, which comes after replica 1's gradient,
  // for which replica 1 needs microbatch 0, whose turn is after replica 0's microbatch 1.
  Schedule schedule = one_f_one_b(2, 2);
  schedule.replicas = 2;
  schedule.cell = 2;
  const auto f = [](int microbatch) {
    return Block{F, 0, 1, ChunkId{0}, MicrobatchId{microbatch}};
  };
  const auto b = [](int microbatch) {
    return Block{B, 0, 1, ChunkId{1}, MicrobatchId{microbatch}};
  };
  schedule.rows[0] = {
      f(0), {B, 0, 1, ChunkId{0}, MicrobatchId{0}}, f(1), {B, 0, 1, ChunkId{0}, MicrobatchId{1}}};
  schedule.link_orders = {
      {turns_name(0, DeviceId{0}, DeviceId{1}),
       {{ReplicaId{0}, f(0)}, {ReplicaId{0}, f(1)}, {ReplicaId{1}, f(0)}, {ReplicaId{1}, f(1)}},
       LinkOrderKind::turns},
      {turns_name(0, DeviceId{1}, DeviceId{0}),
       {{ReplicaId{1}, b(0)}, {ReplicaId{0}, b(0)}, {ReplicaId{0}, b(1)}, {ReplicaId{1}, b(1)}},
       LinkOrderKind::turns},
  };
  expect_violation(
      first_violation(schedule), ViolationKind::deadlock,
      AllOf(HasSubstr("device 0 of replica 0 waits at position 1, B(chunk 0, microbatch 0), for "
                      "B(chunk 1, microbatch 0) of replica 0, whose turn comes behind that of "
                      "B(chunk 1, microbatch 0) of replica 1 (\"turns 0/1>0\")"),
            HasSubstr("device 1 of replica 1 waits at position 0, F(chunk 1, microbatch 0), for "
                      "F(chunk 0, microbatch 0) of replica 1, whose turn comes behind that of "
                      "F(chunk 0, microbatch 1) of replica 0 (\"turns 0/0>1\")")));
  std::swap(schedule.link_orders[1].messages[0], schedule.link_orders[1].messages[1]);
  EXPECT_FALSE(first_violation(schedule));
}

TEST(FirstViolation, NamesBlocksOutOfRange) {
  Schedule schedule = one_f_one_b(2, 2);
  schedule.rows[0][0].microbatch = MicrobatchId{2};
  expect_violation(first_violation(schedule), ViolationKind::shape,
                   HasSubstr("device 0 has F(chunk 0, microbatch 2) at position 0, but the "
                             "schedule has chunks 0 to 1 and microbatches 0 to 1."));
  schedule = one_f_one_b(2, 2);
  schedule.rows[0][0].chunk = ChunkId{-1};
  expect_violation(first_violation(schedule), ViolationKind::shape, HasSubstr("chunk -1"));
  schedule = one_f_one_b(2, 2);
  schedule.rows[0][0].part = 1;
  expect_violation(first_violation(schedule), ViolationKind::shape, HasSubstr("part 1 of 1"));
  schedule = one_f_one_b(2, 2);
  schedule.rows[0][0].kind = static_cast<BlockKind>(9);
  expect_violation(first_violation(schedule), ViolationKind::shape, HasSubstr("unknown kind 9"));
}

TEST(FirstViolation, NamesABlockOnTheWrongDevice) {
  Schedule schedule = one_f_one_b(2, 2);
  schedule.rows[1].push_back(schedule.rows[0].back());
  schedule.rows[0].pop_back();
  expect_violation(first_violation(schedule), ViolationKind::shape,
                   HasSubstr("device 1 has B(chunk 0, microbatch 1) at position 4, but chunk 0 "
                             "lies on device 0."));
}

TEST(FirstViolation, NamesMissingAndRepeatedBlocks) {
  using enum ViolationKind;
  Schedule schedule = one_f_one_b(2, 3);
  schedule.rows[1].pop_back();
  expect_violation(first_violation(schedule), missing_block,
                   HasSubstr("device 1 lacks B(chunk 1, microbatch 2)"));
  schedule.rows[1].clear();
  expect_violation(first_violation(schedule), missing_block,
                   HasSubstr("device 1 lacks F(chunk 1, microbatch 0)"));
  schedule = one_f_one_b(2, 3);
  schedule.rows[0].push_back({F, 0, 1, ChunkId{0}, MicrobatchId{1}});
  expect_violation(first_violation(schedule), repeated_block,
                   HasSubstr("device 0 has F(chunk 0, microbatch 1) once more at position 6"));
  schedule = generate("zb-h1", uniform_scenario(2, 3));
  std::erase(schedule.rows[0], Block{W, 0, 1, ChunkId{0}, MicrobatchId{1}});
  expect_violation(first_violation(schedule), missing_block,
                   HasSubstr("device 0 lacks W(chunk 0, microbatch 1) (its D is there)"));
  schedule.rows[0].push_back({B, 0, 1, ChunkId{0}, MicrobatchId{1}});
  expect_violation(first_violation(schedule), repeated_block,
                   HasSubstr("both B(chunk 0, microbatch 1) and D(chunk 0, microbatch 1)"));
}

TEST(FirstViolation, AllowsAMixOfWholeAndSplitBackwards) {
  Schedule schedule = one_f_one_b(2, 2);
  schedule.rows[0] = {{F, 0, 1, ChunkId{0}, MicrobatchId{0}},
                      {F, 0, 1, ChunkId{0}, MicrobatchId{1}},
                      {D, 0, 1, ChunkId{0}, MicrobatchId{0}},
                      {B, 0, 1, ChunkId{0}, MicrobatchId{1}},
                      {W, 0, 1, ChunkId{0}, MicrobatchId{0}}};
  EXPECT_FALSE(first_violation(schedule));
}

TEST(FirstViolation, ClaimsOfHugeCountsCostNothing) {
  Schedule schedule = one_f_one_b(2, 2);
  schedule.microbatches = 2'000'000'000;
  expect_violation(first_violation(schedule), ViolationKind::missing_block,
                   HasSubstr("device 0 lacks F(chunk 0, microbatch 2)"));
}

TEST(FirstViolation, NamesABlockInFrontOfWhatItNeedsOnItsDevice) {
  using enum ViolationKind;
  Schedule schedule = one_f_one_b(2, 2);
  std::swap(schedule.rows[1][0], schedule.rows[1][1]);
  expect_violation(first_violation(schedule), dependency,
                   HasSubstr("device 1 has B(chunk 1, microbatch 0) at position 0, but F(chunk 1, "
                             "microbatch 0), which it needs, stands at position 1."));
  schedule = generate("zb-h1", uniform_scenario(1, 1));
  std::swap(schedule.rows[0][1], schedule.rows[0][2]);
  expect_violation(first_violation(schedule), dependency, HasSubstr("W(chunk 0, microbatch 0) at"));
  // Both chunks of the last device of a wave: chunk 1 hands on to chunk 2 without a message.
  schedule = generate("zbv", uniform_scenario(2, 1));
  std::swap(schedule.rows[1][0], schedule.rows[1][1]);
  expect_violation(first_violation(schedule), dependency,
                   AllOf(HasSubstr("F(chunk 2, microbatch 0) at position 0"),
                         HasSubstr("but F(chunk 1, microbatch 0)")));
}

TEST(FirstViolation, ChecksRecomputation) {
  using enum ViolationKind;
  Scenario scenario = uniform_scenario(2, 2);
  scenario.memory.recompute = true;
  Schedule schedule = generate("1f1b", scenario);
  EXPECT_FALSE(first_violation(schedule, scenario));
  std::swap(schedule.rows[1][1], schedule.rows[1][2]);
  expect_violation(first_violation(schedule), dependency,
                   HasSubstr("but R(chunk 1, microbatch 0), which it needs"));
  std::erase(schedule.rows[1], Block{R, 0, 1, ChunkId{1}, MicrobatchId{0}});
  expect_violation(
      first_violation(schedule), missing_block,
      HasSubstr("lacks R(chunk 1, microbatch 0) (the chunk recomputes other microbatches)"));
  std::erase(schedule.rows[1], Block{R, 0, 1, ChunkId{1}, MicrobatchId{1}});
  EXPECT_FALSE(first_violation(schedule, scenario)) << "the last stage need not recompute";
}

TEST(FirstViolation, KnowsThatARecomputeMayWaitForItsGradient) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.memory.recompute = true;
  Schedule schedule = generate("1f1b", scenario);
  // Device 0 recomputes microbatch 0 before the F that device 1 wants before it goes back.
  schedule.rows[0] = {
      {F, 0, 1, ChunkId{0}, MicrobatchId{0}}, {R, 0, 1, ChunkId{0}, MicrobatchId{0}},
      {F, 0, 1, ChunkId{0}, MicrobatchId{1}}, {B, 0, 1, ChunkId{0}, MicrobatchId{0}},
      {R, 0, 1, ChunkId{0}, MicrobatchId{1}}, {B, 0, 1, ChunkId{0}, MicrobatchId{1}}};
  schedule.rows[1] = {
      {F, 0, 1, ChunkId{1}, MicrobatchId{0}}, {F, 0, 1, ChunkId{1}, MicrobatchId{1}},
      {R, 0, 1, ChunkId{1}, MicrobatchId{0}}, {B, 0, 1, ChunkId{1}, MicrobatchId{0}},
      {R, 0, 1, ChunkId{1}, MicrobatchId{1}}, {B, 0, 1, ChunkId{1}, MicrobatchId{1}}};
  expect_violation(first_violation(schedule), ViolationKind::deadlock,
                   HasSubstr("device 0 waits at position 1, R(chunk 0, microbatch 0), for B(chunk "
                             "1, microbatch 0) of device 1"));
  schedule.recompute_timing = RecomputeTiming::ahead;
  EXPECT_FALSE(first_violation(schedule));
}

TEST(FirstViolation, ChecksParts) {
  using enum ViolationKind;
  Schedule schedule = one_f_one_b(1, 1);
  std::vector<Block>& row = schedule.rows[0];
  row = {{F, 0, 2, ChunkId{0}, MicrobatchId{0}},
         {F, 1, 2, ChunkId{0}, MicrobatchId{0}},
         {B, 0, 1, ChunkId{0}, MicrobatchId{0}}};
  EXPECT_FALSE(first_violation(schedule));
  row = {{F, 1, 2, ChunkId{0}, MicrobatchId{0}},
         {F, 0, 2, ChunkId{0}, MicrobatchId{0}},
         {B, 0, 1, ChunkId{0}, MicrobatchId{0}}};
  expect_violation(first_violation(schedule), dependency, HasSubstr("part 1/2 at position 0"));
  row = {{F, 0, 2, ChunkId{0}, MicrobatchId{0}},
         {B, 0, 1, ChunkId{0}, MicrobatchId{0}},
         {F, 1, 2, ChunkId{0}, MicrobatchId{0}}};
  expect_violation(first_violation(schedule), dependency, HasSubstr("stands at position 2"));
  row = {{F, 0, 2, ChunkId{0}, MicrobatchId{0}}, {B, 0, 1, ChunkId{0}, MicrobatchId{0}}};
  expect_violation(first_violation(schedule), missing_block, HasSubstr("1 of the 2 parts"));
  row = {{F, 0, 2, ChunkId{0}, MicrobatchId{0}},
         {F, 0, 2, ChunkId{0}, MicrobatchId{0}},
         {B, 0, 1, ChunkId{0}, MicrobatchId{0}}};
  expect_violation(first_violation(schedule), repeated_block, HasSubstr("part 0/2 once more"));
  row = {{F, 1, 2, ChunkId{0}, MicrobatchId{0}},
         {F, 1, 2, ChunkId{0}, MicrobatchId{0}},
         {B, 0, 1, ChunkId{0}, MicrobatchId{0}}};
  expect_violation(first_violation(schedule), missing_block, HasSubstr("but not part 0"));
  row = {{F, 0, 2, ChunkId{0}, MicrobatchId{0}},
         {F, 1, 3, ChunkId{0}, MicrobatchId{0}},
         {B, 0, 1, ChunkId{0}, MicrobatchId{0}}};
  expect_violation(first_violation(schedule), shape, HasSubstr("splits into 2 parts"));
}

TEST(FirstViolation, PrintsTheCycleOfADeadlock) {
  Schedule schedule = generate("interleaved-1f1b", uniform_scenario(2, 2));
  std::swap(schedule.rows[1][0], schedule.rows[1][2]);  // F of chunk 3 before chunk 1
  expect_violation(
      first_violation(schedule), ViolationKind::deadlock,
      AllOf(HasSubstr("device 0 waits at position 2, F(chunk 2, microbatch 0), for F(chunk 1, "
                      "microbatch 0) of device 1, at position 2 there"),
            HasSubstr("device 1 waits at position 0, F(chunk 3, microbatch 0), for F(chunk 2, "
                      "microbatch 0) of device 0, at position 2 there")));
}

TEST(FirstViolation, FindsADeadlockInALaterReplica) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.parallel.replicas = 2;
  Schedule schedule = generate("1f1b", scenario);
  schedule.rows.insert(schedule.rows.end(), {schedule.rows[0], schedule.rows[1]});
  EXPECT_FALSE(first_violation(schedule));
  schedule.rows[2] = {{F, 0, 1, ChunkId{0}, MicrobatchId{0}},
                      {B, 0, 1, ChunkId{0}, MicrobatchId{0}},
                      {F, 0, 1, ChunkId{0}, MicrobatchId{1}},
                      {B, 0, 1, ChunkId{0}, MicrobatchId{1}}};
  schedule.rows[3] = {{F, 0, 1, ChunkId{1}, MicrobatchId{0}},
                      {F, 0, 1, ChunkId{1}, MicrobatchId{1}},
                      {B, 0, 1, ChunkId{1}, MicrobatchId{0}},
                      {B, 0, 1, ChunkId{1}, MicrobatchId{1}}};
  expect_violation(first_violation(schedule), ViolationKind::deadlock,
                   AllOf(HasSubstr("device 0 of replica 1 waits at position 1"),
                         HasSubstr("device 1 of replica 1 waits at position 1")));
}

TEST(FirstViolation, ComparesWithTheScenario) {
  const Schedule schedule = one_f_one_b(4, 8);
  using enum ViolationKind;
  expect_violation(first_violation(schedule, uniform_scenario(3, 8)), shape,
                   HasSubstr("4 devices, but the scenario has 3. Use a schedule made for it, or "
                             "set parallel.stages."));
  expect_violation(first_violation(schedule, uniform_scenario(4, 9)), shape,
                   HasSubstr("8 microbatches"));
}

TEST(FirstViolation, NamesDeviceBlockAndAmountOverTheBudget) {
  Scenario scenario = uniform_scenario(4, 8);
  expect_violation(
      first_violation(generate("gpipe", scenario), scenario), ViolationKind::memory,
      AllOf(HasSubstr("device 0 holds 10 MiB (5 activations of its stage) with F(chunk 0, "
                      "microbatch 4) at position 4"),
            HasSubstr("budget of 8 MiB (4 activations of the largest stage) by 2097152 bytes")));
  scenario.memory.budget = 2;
  EXPECT_FALSE(first_violation(generate("gpipe", scenario), scenario));
}

TEST(FirstViolation, NamesTheDeviceOverItsCapacity) {
  Scenario scenario = uniform_scenario(4, 8);
  scenario.memory.capacity[2] = 70_MiB;
  expect_violation(first_violation(one_f_one_b(4, 8), scenario), ViolationKind::memory,
                   AllOf(HasSubstr("device 2 needs 72 MiB, 2097152 bytes over its capacity"),
                         HasSubstr("activations 4 MiB (2 activations of its stage)")));
}

TEST(FirstViolation, ChecksMoreThanAMillionBlocks) {
  const Scenario scenario = uniform_scenario(64, 8192);  // 1.5 million blocks
  Schedule schedule = generate("zb-h1", scenario);
  EXPECT_FALSE(first_violation(schedule, scenario));
  std::swap(schedule.rows[63][0], schedule.rows[63][1]);
  expect_violation(first_violation(schedule), ViolationKind::dependency, HasSubstr("device 63"));
}

}  // namespace
}  // namespace longhaul::schedule
