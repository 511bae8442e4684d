#include "harness/collectives/step_runner.hpp"

#include <random>

#include <gtest/gtest.h>

#include "harness/collectives/timed_runs.hpp"
#include "support/collectives.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::harness {
namespace {

using testing::along;
using testing::flat;
using Algorithm = plan::CollectiveAlgorithm;

constexpr Repetitions kTwice{1, 1};

class StepRunnerTest : public testing::OnRanks {
protected:
  /// By messages, and from memory that members share.
  static std::int64_t wrong(plan::Collective collective, BufferUse use) {
    collective.size = size_in_numbers(collective);
    std::int64_t wrong = 0;
    for (const CollectiveCalls calls : {CollectiveCalls::messages, CollectiveCalls::shared})
      wrong += time_steps(collective, ranks(), kTwice, use, calls).wrong;
    return wrong;
  }
};

// Every kind by every algorithm that the number of ranks allows, in 1 and 3 pieces.
RANKS_TEST(StepRunnerTest, GivesEachMemberWhatTheKindSays) {
  const int count = ranks().count();
  std::mt19937 random{11};
  for (const CollectiveKind kind : every<CollectiveKind>()) {
    for (const Algorithm algorithm : every<Algorithm>()) {
      for (const int pieces : {1, 3}) {
        const Bytes size{static_cast<std::int64_t>(4000 + random() % 200'000)};
        const plan::Collective collective = flat(kind, count, size, algorithm, pieces);
        if (algorithm == Algorithm::hierarchical || plan::why_no_steps(collective)) continue;
        for (const BufferUse use : {BufferUse::out_of_place, BufferUse::in_place})
          EXPECT_EQ(wrong(collective, use), 0)
              << to_text(kind) << ' ' << plan::to_string(algorithm) << ' ' << pieces;
      }
    }
  }
}

RANKS_TEST(StepRunnerTest, GoesAlongTheDimensionsOfAMesh) {
  NEEDS_RANKS(4);
  if (ranks().count() != 4) return;  // a mesh of 2 x 2
  for (const CollectiveKind kind : every<CollectiveKind>())
    for (const BufferUse use : {BufferUse::out_of_place, BufferUse::in_place})
      EXPECT_EQ(wrong(along(kind, Bytes{70'000}, {2, 2}, {1, 0}, {}, 2), use), 0) << to_text(kind);
  EXPECT_EQ(wrong(along(CollectiveKind::all_reduce, Bytes{70'000}, {2, 2}, {1, 0},
                        {Algorithm::exchange, Algorithm::ring}),
                  BufferUse::in_place),
            0);
}

// More than 64 Ki numbers a message: sums of one message and of several at a time.
RANKS_TEST(StepRunnerTest, TravelsInSegments) {
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                    CollectiveKind::reduce, CollectiveKind::broadcast}) {
    for (const Algorithm algorithm : every<Algorithm>()) {
      const plan::Collective collective =
          flat(kind, ranks().count(), Bytes{5'300'000}, algorithm, 1);
      if (algorithm == Algorithm::hierarchical || plan::why_no_steps(collective)) continue;
      for (const BufferUse use : {BufferUse::out_of_place, BufferUse::in_place})
        EXPECT_EQ(wrong(collective, use), 0) << to_text(kind) << ' ' << plan::to_string(algorithm);
    }
  }
}

RANKS_TEST(StepRunnerTest, LeavesRanksOutThatAreNoMembers) {
  NEEDS_RANKS(4);
  plan::Collective collective = flat(CollectiveKind::all_reduce, 2, Bytes{64'000}, Algorithm::ring);
  collective.members = {Rank{1}, Rank{3}};
  EXPECT_EQ(wrong(collective, BufferUse::out_of_place), 0);
}

RANKS_TEST(StepRunnerTest, IsHeldAgainstMpisOwn) {
  for (const CollectiveKind kind : every<CollectiveKind>()) {
    for (const BufferUse use : {BufferUse::out_of_place, BufferUse::in_place}) {
      const auto own = time_own(flat(kind, ranks().count(), Bytes{40'000}, Algorithm::ring),
                                ranks(), kTwice, use);
      EXPECT_EQ(own.has_value(), !ranks().world().is_of_threads());
      if (!own) continue;
      EXPECT_EQ(own->wrong, 0) << to_text(kind) << ' ' << static_cast<int>(use);
      EXPECT_EQ(own->durations_ns.size(), ranks().is_first() ? 1U : 0U);
    }
  }
}

// Two members' numbers, and one of them changed.
TEST(StepNumbers, TellAWrongNumber) {
  const plan::Collective collective =
      flat(CollectiveKind::all_reduce, 2, Bytes{80'000}, Algorithm::ring);
  const plan::CollectiveSteps steps = plan::steps_of(collective);
  const StepNumbers numbers{steps, 3};
  std::vector<float> mine(10'000), other(10'000);
  numbers.fill(mine, 0, 1);
  numbers.fill(other, 1, 1);
  EXPECT_FALSE(numbers.are_right(mine, 1));
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] += other[i];
  EXPECT_TRUE(numbers.are_right(mine, 1));
  EXPECT_FALSE(numbers.are_right(mine, 0)) << "of another item";
  EXPECT_FALSE((StepNumbers{steps, 4}.are_right(mine, 1))) << "of another iteration";
  mine[9'999] += 1;
  EXPECT_FALSE(numbers.are_right(mine, 1));
}

TEST(StepNumbers, DivideShardsAndPieces) {
  const auto size = [](std::int64_t bytes, int members, int pieces) {
    return size_in_numbers(
               flat(CollectiveKind::all_reduce, members, Bytes{bytes}, Algorithm::ring, pieces))
        .count();
  };
  EXPECT_EQ(size(1'000, 3, 1), 996);
  EXPECT_EQ(size(1'000, 3, 4), 960);
  EXPECT_EQ(size(1'008, 3, 4), 1'008);
  EXPECT_THROW((void)size(47, 3, 4), Error);
}

}  // namespace
}  // namespace longhaul::harness
