#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compress/select/sparsifier.hpp"
#include "compress/sparse_set.hpp"
#include "compress/support.hpp"

namespace longhaul::compress::test {
namespace {

using ::testing::ElementsAre;

TEST(Merge, AddsInTheOrderOfTheSets) {
  const SparseSet a{10, 2, {0, 3}, {1, 2, 3, 4}};
  const SparseSet b{10, 2, {3, 4}, {10, 20, 5, 6}};
  const std::vector<SparseSet> sets{a, b};
  const SparseSet sum = merge(sets);
  EXPECT_THAT(sum.blocks, ElementsAre(0, 3, 4));
  EXPECT_THAT(sum.values, ElementsAre(1, 2, 13, 24, 5, 6));
}

TEST(AddTo, PutsEachNumberAtItsPlace) {
  std::vector<float> dense(8, 1);
  add_to(dense, {8, 3, {0, 2}, {1, 2, 3, 4, 5}}, 10);  // the last block has two numbers
  EXPECT_THAT(dense, ElementsAre(11, 21, 31, 1, 1, 1, 41, 51));
}

TEST(Merge, OfNothingIsNothing) {
  EXPECT_TRUE(merge({}).blocks.empty());
  const std::vector<SparseSet> empty{{100, 4, {}, {}}, {100, 4, {}, {}}};
  EXPECT_TRUE(merge(empty).values.empty());
  EXPECT_EQ(merge(empty).count, 100);
}

TEST(Merge, RefusesSetsOfOtherVectors) {
  const std::vector<SparseSet> sets{{10, 2, {0}, {1, 2}}, {12, 2, {0}, {1, 2}}};
  EXPECT_THROW(static_cast<void>(merge(sets)), Error);
}

/// A number is a sum in the order of the sets: equal bits to a dense sum of those that have it.
TEST(Merge, EqualsASumByPlace) {
  for (const int block : {1, 4, 16})
    for (const std::size_t count : {17U, 70'003U})
      for (const double keep : {0.0005, 0.02, 1.0}) {
        std::vector<SparseSet> sets;
        std::map<std::size_t, float> wanted;
        for (std::uint64_t i = 0; i < 5; ++i) {
          Settings settings{.method = Method::block, .keep = keep, .block = block};
          Sparsifier sparsifier{settings, static_cast<std::int64_t>(count)};
          std::vector<float> sum = gradient_of(count, 10 * i);
          sets.push_back(sparsifier.take(sum));
          if (keep == 1 && i == 2) break;
        }
        for (const SparseSet& set : sets)
          each_block(set, [&](std::size_t place, std::size_t at, std::size_t size) {
            for (std::size_t j = 0; j < size; ++j) {
              const auto [slot, fresh] = wanted.try_emplace(place + j, set.values[at + j]);
              if (!fresh) slot->second += set.values[at + j];
            }
          });
        const SparseSet sum = merge(sets);
        ASSERT_EQ(sum.values.size(), wanted.size());
        std::size_t at = 0;
        const std::vector<std::int64_t> found = places(sum);
        for (const auto& [place, value] : wanted) {
          ASSERT_EQ(found[at], static_cast<std::int64_t>(place));
          ASSERT_EQ(sum.values[at++], value);
        }
      }
}

}  // namespace
}  // namespace longhaul::compress::test
