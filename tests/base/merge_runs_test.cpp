#include "base/merge_runs.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"

namespace longhaul {
namespace {

using ::testing::ElementsAre;

TEST(MergeRuns, SortsAndKeepsTheOrderOfEqualItems) {
  std::vector<int> none;
  merge_runs(none);
  EXPECT_TRUE(none.empty());
  using Item = std::pair<int, char>;
  std::vector<Item> items{{1, 'a'}, {3, 'b'}, {2, 'c'}, {3, 'd'}, {0, 'e'}, {1, 'f'}, {3, 'g'}};
  merge_runs(items, [](const Item& x, const Item& y) { return x.first < y.first; });
  EXPECT_THAT(items, ElementsAre(Item{0, 'e'}, Item{1, 'a'}, Item{1, 'f'}, Item{2, 'c'},
                                 Item{3, 'b'}, Item{3, 'd'}, Item{3, 'g'}));
}

TEST(MergeRuns, SortsAnyNumberOfRuns) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Random random{seed};
    std::vector<std::int64_t> items, sorted;
    for (std::int64_t count = random.between(0, 60); count > 0; --count)
      items.push_back(random.between(0, 30));
    sorted = items;
    std::ranges::sort(sorted);
    merge_runs(items);
    EXPECT_EQ(items, sorted) << seed;
  }
}

}  // namespace
}  // namespace longhaul
