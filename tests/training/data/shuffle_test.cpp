// The order of samples: each once an epoch, without a table.
#include "training/data/shuffle.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul::testing {
namespace {

using ::testing::ElementsAre;
using training::Shuffle;
using Numbers = std::vector<std::int64_t>;

Numbers epoch(const Shuffle& shuffle, std::int64_t count, std::uint64_t number) {
  Numbers all(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = shuffle[number * static_cast<std::uint64_t>(count) + i];
  return all;
}

TEST(Shuffle, HasEachNumberOnceAnEpoch) {
  for (const std::int64_t count : {1, 2, 3, 4, 5, 15, 16, 17, 64, 65, 1437, 4096, 4097}) {
    Numbers expected(static_cast<std::size_t>(count));
    std::iota(expected.begin(), expected.end(), 0);
    const Shuffle shuffle{count, 7};
    for (const std::uint64_t number : {0U, 1U, 2U, 999U}) {
      Numbers got = epoch(shuffle, count, number);
      std::sort(got.begin(), got.end());
      EXPECT_EQ(got, expected) << count << " numbers, epoch " << number;
    }
  }
}

TEST(Shuffle, GivesEachEpochAndEachSeedAnOrderOfItsOwn) {
  std::set<Numbers> orders;
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U, 4U}) {
    for (std::uint64_t number = 0; number < 200; ++number)
      orders.insert(epoch(Shuffle{22, seed}, 22, number));
  }
  EXPECT_EQ(orders.size(), 1000U);
}

/// A machine that draws otherwise would train on another order. Computed apart, in Python.
TEST(Shuffle, IsTheSameOnEveryMachine) {
  EXPECT_THAT(epoch(Shuffle{10, 1}, 10, 0), ElementsAre(0, 7, 2, 8, 3, 6, 4, 5, 1, 9));
  EXPECT_THAT(epoch(Shuffle{10, 1}, 10, 1), ElementsAre(7, 6, 5, 3, 1, 2, 0, 9, 8, 4));
}

/// Each number is at each place in one of ten epochs: 1,000 of 10,000, give or take 30 (one
/// standard deviation), and follows each other one equally often.
TEST(Shuffle, PrefersNoPlaceAndNoNeighbour) {
  constexpr std::size_t kCount = 10;
  const Shuffle shuffle{kCount, 3};
  std::vector<int> at_place(kCount * kCount), after(kCount * kCount);
  for (std::uint64_t number = 0; number < 10'000; ++number) {
    const Numbers order = epoch(shuffle, kCount, number);
    for (std::size_t i = 0; i < kCount; ++i) {
      const auto here = static_cast<std::size_t>(order[i]);
      ++at_place[i * kCount + here];
      if (i > 0) ++after[static_cast<std::size_t>(order[i - 1]) * kCount + here];
    }
  }
  EXPECT_GT(*std::min_element(at_place.begin(), at_place.end()), 850);
  EXPECT_LT(*std::max_element(at_place.begin(), at_place.end()), 1150);
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (i % (kCount + 1) == 0) continue;  // a number after itself
    EXPECT_GT(after[i], 850) << i;
    EXPECT_LT(after[i], 1150) << i;
  }
}

TEST(Shuffle, TakesNoTableForManyNumbers) {
  constexpr std::int64_t kCount = 1'000'000'000'039;
  const Shuffle shuffle{kCount, 5};
  std::set<std::int64_t> seen;
  for (std::uint64_t place = 0; place < 50'000; ++place) seen.insert(shuffle[place]);
  EXPECT_EQ(seen.size(), 50'000U);
  EXPECT_GE(*seen.begin(), 0);
  EXPECT_LT(*seen.rbegin(), kCount);
  EXPECT_GT(*seen.rbegin(), kCount - kCount / 1000);
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  EXPECT_GE((Shuffle{kMost, 5}[std::numeric_limits<std::uint64_t>::max()]), 0);
}

}  // namespace
}  // namespace longhaul::testing
