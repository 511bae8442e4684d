#include "schedule/generators/cell/atlas.hpp"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/figure6.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::schedule {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Timed {
  Schedule schedule;
  Timetable times;
};

Timed timed(std::string_view name, const Scenario& scenario) {
  return {generate(name, scenario), timetable_of(name, scenario)};
}

/// A device's timeline as figure 6 draws it, a character a slot: "F1" is 1, "R1" is a, "B1" is AA.
std::string timeline(const Timed& timed, ReplicaId replica, int stage) {
  const std::size_t row =
      timed.schedule.replicas_share_rows()
          ? static_cast<std::size_t>(stage)
          : static_cast<std::size_t>(number(replica) * timed.schedule.devices + stage);
  std::string slots;
  for (std::size_t i = 0; i < timed.schedule.rows[row].size(); ++i) {
    const Block& block = timed.schedule.rows[row][i];
    const auto slot = static_cast<std::size_t>(timed.times.starts[row][i] / test::kSlot);
    slots.resize(std::max(slots.size(), slot), '.');
    const auto microbatch = static_cast<char>(block.microbatch);
    if (block.kind == BlockKind::F) slots += static_cast<char>('1' + microbatch);
    if (block.kind == BlockKind::R) slots += static_cast<char>('a' + microbatch);
    if (block.kind == BlockKind::B) slots += std::string(2, static_cast<char>('A' + microbatch));
  }
  return slots;
}

TEST(Figure6, VarunaEndsAtSlot38) {
  const Timed varuna = timed("varuna", test::figure6());
  EXPECT_EQ(timeline(varuna, ReplicaId{0}, 0), "1234...................aAAbBB...cCCdDD");
  EXPECT_EQ(timeline(varuna, ReplicaId{0}, 1), ".1234................aAAbBB...cCCdDD");
  EXPECT_EQ(timeline(varuna, ReplicaId{0}, 2), "....1.2.3.4......aAAbBB...cCCdDD");
  EXPECT_EQ(timeline(varuna, ReplicaId{0}, 3), ".....1.2.3.4...aAAbBB...cCCdDD");
  EXPECT_EQ(timeline(varuna, ReplicaId{0}, 4), "........1.2aAAbBB34.cCCdDD");
  EXPECT_EQ(timeline(varuna, ReplicaId{0}, 5), ".........1AA2BB...3CC4DD");
  EXPECT_EQ(varuna.times.end, 38 * test::kSlot);
}

TEST(Figure6, ACellOfTwoEndsAtSlot36) {
  const Timed atlas = timed("atlas", test::figure6());
  ASSERT_EQ(atlas.schedule.cell, 2);
  EXPECT_EQ(timeline(atlas, ReplicaId{0}, 0), "1234abcd.............AA.BB.CC.DD");
  EXPECT_EQ(timeline(atlas, ReplicaId{0}, 4), "......1234aAAbBBcCCdDD");
  EXPECT_EQ(timeline(atlas, ReplicaId{0}, 5), ".......1AA2BB3CC4DD");
  // The paper's DP-1, second in LocalDPRank, begins at slot 5.
  EXPECT_EQ(timeline(atlas, ReplicaId{1}, 0), "....1234abcd.............AA.BB.CC.DD");
  EXPECT_EQ(timeline(atlas, ReplicaId{1}, 1), ".....1234abcd..........AA.BB.CC.DD");
  EXPECT_EQ(timeline(atlas, ReplicaId{1}, 4), "..........1234aAAbBBcCCdDD");
  EXPECT_EQ(timeline(atlas, ReplicaId{1}, 5), "...........1AA2BB3CC4DD");
  EXPECT_EQ(atlas.times.end, 36 * test::kSlot);
}

TEST(Figure6, SharingTakesTheBubblesBetweenMicrobatchesAway) {
  // G-9, the third stage, idles between the microbatches of slots 5 to 11 in (a), not in (b).
  EXPECT_THAT(timeline(timed("varuna", test::figure6()), ReplicaId{0}, 2),
              ::testing::StartsWith("....1.2.3.4."));
  EXPECT_THAT(timeline(timed("atlas", test::figure6()), ReplicaId{0}, 2),
              ::testing::StartsWith("...1234"));
}

TEST(Figure6, TheRecomputePolicyBringsTheTwoSlots) {
  const auto slots = [](const char* name) {
    return timetable_of(name, test::figure6()).end / test::kSlot;
  };
  EXPECT_EQ(slots("varuna"), 38);       // each for itself, R timed
  EXPECT_EQ(slots("varuna-fill"), 36);  // each for itself, R in idle slots
  EXPECT_EQ(slots("atlas-timed"), 38);  // shared in LocalDPRank order, R timed
  EXPECT_EQ(slots("atlas"), 36);        // shared in LocalDPRank order, R in idle slots
  EXPECT_EQ(slots("atlas-even"), 33);   // shared evenly, R in idle slots
}

TEST(Figure6, TurnsAreThePapers) {
  const Timed atlas = timed("atlas", test::figure6());
  ASSERT_EQ(atlas.schedule.link_orders.size(), 4U);
  std::map<std::string, std::vector<std::int64_t>> slots;
  for (std::size_t t = 0; t < atlas.times.turns.size(); ++t) {
    for (const TimedTransfer& transfer : atlas.times.turns[t])
      slots[atlas.schedule.link_orders[t].resource].push_back(transfer.start / test::kSlot + 1);
  }
  EXPECT_THAT(slots["turns 0/1>2"], ElementsAre(3, 4, 5, 6, 7, 8, 9, 10));
  EXPECT_THAT(slots["turns 0/3>4"], ElementsAre(6, 7, 8, 9, 10, 11, 12, 13));
  EXPECT_THAT(slots["turns 0/4>3"], ElementsAre(14, 17, 18, 20, 21, 23, 24, 27));
  EXPECT_THAT(slots["turns 0/2>1"], ElementsAre(19, 22, 23, 25, 26, 28, 29, 32));
}

/// The order of LocalDPRanks lets the last pipeline of a cell begin late: it pays where there are
/// few microbatches, as in figure 6, and costs where there are many.
TEST(Section63, LocalDPRankOrderFallsBehindWithManyMicrobatches) {
  const auto slots = [](const char* name, int pipelines) {
    return timetable_of(name, test::section63(pipelines)).end / test::kSlot;
  };
  EXPECT_EQ(slots("varuna", 2), 484);
  EXPECT_EQ(slots("varuna-fill", 2), 430);
  EXPECT_EQ(slots("atlas-timed", 2), 496);
  EXPECT_EQ(slots("atlas", 2), 482);
  EXPECT_EQ(slots("atlas-even", 2), 423);
  EXPECT_EQ(slots("varuna", 4), 581);
  EXPECT_EQ(slots("varuna-fill", 4), 496);
  EXPECT_EQ(slots("atlas-timed", 4), 629);
  EXPECT_EQ(slots("atlas", 4), 604);
  EXPECT_EQ(slots("atlas-even", 4), 470);
}

TEST(Varuna, RecomputesNothingOnTheLastStage) {
  const Schedule schedule = generate("varuna", test::figure6());
  EXPECT_EQ(std::ranges::count(schedule.row(ReplicaId{0}, DeviceId{5}), BlockKind::R, &Block::kind),
            0);
  EXPECT_EQ(std::ranges::count(schedule.row(ReplicaId{0}, DeviceId{4}), BlockKind::R, &Block::kind),
            4);
  EXPECT_FALSE(first_violation(schedule));
}

TEST(Varuna, MayExceedTheBudgetAndAtlasDoesNot) {
  Scenario scenario = test::figure6();
  scenario.memory.recompute = false;
  scenario.memory.budget = 0.5;  // two activations; four microbatches pass the first stage at once
  EXPECT_THAT(over_budget(generate("varuna", scenario), scenario), ::testing::Contains(0));
  const Schedule atlas = generate("atlas", scenario);
  EXPECT_THAT(over_budget(atlas, scenario), ::testing::IsEmpty());
  EXPECT_FALSE(first_violation(atlas, scenario));
}

TEST(Atlas, NamesTheSmallestBudget) {
  Scenario scenario = test::figure6();
  scenario.memory.budget = 0.2;
  try {
    (void)generate("atlas", scenario);
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("Set memory.budget to 0.25 or more."));
  }
  scenario.memory.budget = 0.25;
  EXPECT_FALSE(first_violation(generate("atlas", scenario), scenario));
}

// What F keeps and what R adds lie in memory together.
TEST(Atlas, CountsTheInputBesideTheRecomputedRest) {
  Scenario scenario = test::figure6();
  scenario.costs.activation.assign(6, Bytes{48'000});
  scenario.costs.activation.back() = Bytes{12'000};
  scenario.memory.budget = 0.2;
  try {
    (void)generate("atlas", scenario);
    FAIL() << "it fits";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("holds 48000 bytes of activations for one microbatch"));
  }
}

TEST(Atlas, RefusesACellThatIsNotNearItself) {
  Scenario scenario = test::figure6();
  scenario.placement[6 + 2] = DatacenterId{0};
  try {
    (void)generate("atlas", scenario);
    FAIL() << "it is accepted";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("device 2 of cell 0 lies in"));
  }
}

}  // namespace
}  // namespace longhaul::schedule
