#include "training/replay/replay_set.hpp"

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/wire/values.hpp"
#include "training/replay/compressed_parts.hpp"

namespace longhaul::testing {
namespace {

using ::testing::ElementsAre;
using training::ReplaySet;

/// Of all magnitudes that fp32 has, with the ends of the formats.
std::vector<float> numbers_of_all_sizes(std::uint64_t seed) {
  std::vector<float> numbers{0,        -0.0F,    65504,    65519.9F, 65520,     -1e6F,
                             0x1p-24F, 0x1p-25F, 0x3p-26F, 1e-31F,   0x1p-149F, 3.4e38F};
  Random random{seed};
  for (int i = 0; i < 2000; ++i)
    numbers.push_back(static_cast<float>(
        std::ldexp(random.normal(), static_cast<int>(random.between(-140, 125)))));
  numbers.push_back(std::numeric_limits<float>::max());
  return numbers;
}

TEST(ReplaySet, RoundsAsRanksDo) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const std::vector<float> all_sizes = numbers_of_all_sizes(seed);
    for (const std::vector<float>& numbers :
         {all_sizes, numbers_like_gradients(1000 + seed, seed)}) {
      for (const SetValues values : every<SetValues>()) {
        std::vector<float> mine = numbers, theirs = numbers;
        training::round_kept(mine, values);
        compress::round_values(theirs, *from_string<compress::ValueFormat>(to_string(values)));
        EXPECT_EQ(mine, theirs) << to_string(values) << ", seed " << seed;
      }
    }
  }
}

/// One number a scale: the scale itself is what is compared.
TEST(ReplaySet, FindsTheScalesThatRanksFind) {
  Random random{5};
  for (int i = 0; i < 20'000; ++i) {
    const auto number = static_cast<float>(
        std::ldexp(random.normal(), static_cast<int>(random.between(-104, 126))));
    std::vector<float> mine{number, number / 3}, theirs = mine;
    training::round_to_steps(mine);
    compress::round_values(theirs, compress::ValueFormat::int8);
    ASSERT_EQ(mine, theirs) << number;
  }
}

TEST(ReplaySet, RoundsToHalves) {
  const auto half = [](float value) { return training::rounded_to(training::kHalf, value); };
  EXPECT_EQ(half(1 + 0x1p-11F), 1) << "a tie, to even";
  EXPECT_EQ(half(1 + 0x3p-11F), 1 + 0x1p-9F) << "a tie, to even";
  EXPECT_EQ(half(1 + 0x1.1p-11F), 1 + 0x1p-10F);
  EXPECT_EQ(half(-3.14159265F), -3.140625F);
  EXPECT_EQ(half(65519), 65504);
  EXPECT_EQ(half(65520), 65504) << "would be infinite";
  EXPECT_EQ(half(-1e30F), -65504);
  EXPECT_EQ(half(0x1p-14F + 0x1p-24F), 0x1p-14F + 0x1p-24F) << "the least digit there is";
  EXPECT_EQ(half(0x1p-24F), 0x1p-24F);
  EXPECT_EQ(half(0x1p-25F), 0) << "a tie, to even";
  EXPECT_EQ(half(0x1.8p-25F), 0x1p-24F);
  for (int bits = 0; bits < 0x400; ++bits) {
    const float exact = std::ldexp(1 + static_cast<float>(bits) / 1024, bits % 30 - 14);
    EXPECT_EQ(half(exact), exact);
  }
}

TEST(ReplaySet, SumsAsRanksDo) {
  for (const int block : {1, 4, 16})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      std::vector<compress::SparseSet> theirs;
      std::vector<ReplaySet> mine;
      for (std::uint64_t replica = 0; replica < 1 + seed % 5; ++replica) {
        theirs.push_back(drawn_set(1003, block, 0.3, 100 * seed + replica));
        mine.push_back(spread_out(theirs.back()));
      }
      EXPECT_EQ(training::sum_of_sets(mine), spread_out(compress::merge(theirs)))
          << "blocks of " << block << ", seed " << seed;
    }
}

TEST(ReplaySet, SumsInTheOrderOfReplicas) {
  ReplaySet large{1}, small{1}, less{1};
  large.has = small.has = less.has = {1};
  large.numbers = {1e8F};
  small.numbers = {3};
  less.numbers = {-1e8F};
  EXPECT_THAT(training::sum_of_sets(std::vector{large, less, small}).numbers, ElementsAre(3));
  EXPECT_THAT(training::sum_of_sets(std::vector{large, small, less}).numbers, ElementsAre(0));
}

}  // namespace
}  // namespace longhaul::testing
