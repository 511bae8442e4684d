#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "schedule/evaluator.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::schedule {
namespace {

using ::testing::HasSubstr;

Scenario with_groups(int stages, int microbatches, int forward, int backward, int chunks = 2) {
  Scenario scenario = uniform_scenario(stages, microbatches);
  scenario.parallel.chunks = chunks;
  scenario.parallel.microbatch_group = MicrobatchGroup{forward, backward};
  return scenario;
}

std::string row_of(const Scenario& scenario, int device) {
  const Schedule schedule = generate("interleaved-1f1b", scenario);
  std::string text;
  for (const Block& block : schedule.row(ReplicaId{0}, DeviceId{device}))
    text += fmt::format("{}{}{}{}", text.empty() ? "" : " ", number(block.chunk),
                        longhaul::to_string(block.kind), number(block.microbatch));
  return text;
}

/// Chunks of microbatches that a device holds at most.
int most_held(const Scenario& scenario, int device) {
  const Schedule schedule = generate("interleaved-1f1b", scenario);
  int held = 0, most = 0;
  for (const Block& block : schedule.row(ReplicaId{0}, DeviceId{device})) {
    held += block.kind == BlockKind::F ? 1 : -1;
    most = std::max(most, held);
  }
  return most;
}

TEST(MicrobatchGroup, IsDepthFirstWithAsManyAsStages) {
  Scenario plain = with_groups(2, 4, 2, 2);
  const std::string grouped = row_of(plain, 0);
  plain.parallel.microbatch_group.reset();
  EXPECT_EQ(row_of(plain, 0), grouped);
  EXPECT_EQ(grouped, "0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 2B2 2B3 0B2 0B3");
}

// All four pass a chunk before the next one: the last device begins backwards after 4 forwards of
// its first chunk and one of its second.
TEST(MicrobatchGroup, IsBreadthFirstWithAll) {
  const Scenario scenario = with_groups(2, 4, 4, 4);
  EXPECT_EQ(row_of(scenario, 1), "1F0 1F1 1F2 1F3 3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 1B0 1B1 1B2 1B3");
  EXPECT_EQ(row_of(scenario, 0), "0F0 0F1 0F2 0F3 2F0 2F1 2F2 2B0 2F3 2B1 2B2 2B3 0B0 0B1 0B2 0B3");
  EXPECT_EQ(most_held(scenario, 0), 7);
  EXPECT_EQ(most_held(with_groups(2, 4, 2, 2), 0), 5);
}

// Forwards in one group of 4, backwards in two of 2: the first two are through both chunks sooner.
TEST(MicrobatchGroup, GroupsForwardsAndBackwardsApart) {
  EXPECT_EQ(row_of(with_groups(2, 4, 4, 2), 1),
            "1F0 1F1 1F2 1F3 3F0 3B0 3F1 3B1 3F2 1B0 3F3 1B1 3B2 3B3 1B2 1B3");
  // The last group has the two that are left; the backward of 3 must find its forward done.
  EXPECT_EQ(row_of(with_groups(2, 5, 3, 5), 1),
            "1F0 1F1 1F2 3F0 3F1 3F2 3B0 1F3 3B1 1F4 3B2 3F3 3B3 3F4 3B4 1B0 1B1 1B2 1B3 1B4");
}

TEST(MicrobatchGroup, IsRefusedBelowTheStagesAndAboveTheMicrobatches) {
  const auto said = [](const Scenario& scenario) {
    try {
      (void)generate("interleaved-1f1b", scenario);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{"no error"};
  };
  EXPECT_THAT(said(with_groups(4, 8, 3, 4)), HasSubstr("microbatch_group = 3 with 8"));
  EXPECT_THAT(said(with_groups(4, 8, 4, 9)), HasSubstr("Use 4 to 8"));
  EXPECT_THAT(said(with_groups(4, 6, 4, 4)), HasSubstr("the last group would have 2"));
}

TEST(MicrobatchGroup, GivesValidSchedulesThatRun) {
  int defined = 0;
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random{seed};
    const auto draw = [&](std::int64_t low, std::int64_t high) {
      return static_cast<int>(random.between(low, high));
    };
    const int stages = draw(1, 5);
    const int microbatches = stages + draw(0, 12);
    const int forward = draw(stages, microbatches);
    const int backward = draw(stages, microbatches);
    const auto fits = [&](int group) {
      return microbatches % group == 0 || microbatches % group >= stages;
    };
    if (!fits(forward) || !fits(backward)) continue;
    const Scenario scenario = with_groups(stages, microbatches, forward, backward, draw(1, 3));
    SCOPED_TRACE(fmt::format("{} stages, {} microbatches, {} and {}, {} chunks", stages,
                             microbatches, forward, backward, scenario.parallel.chunks));
    const Schedule schedule = generate("interleaved-1f1b", scenario);
    const auto found = first_violation(schedule);
    ASSERT_FALSE(found) << found->text;
    ASSERT_TRUE(test::evaluate(schedule, scenario)) << "deadlock";
    ++defined;
  }
  EXPECT_GT(defined, 100);
}

}  // namespace
}  // namespace longhaul::schedule
