#include "trace/validate/external_sort.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "trace/scratch_directory.hpp"

namespace longhaul::trace {
namespace {

struct Number {
  std::int64_t value;
};
struct Less {
  bool operator()(const Number& a, const Number& b) const { return a.value < b.value; }
};
using Sort = ExternalSort<Number, Less>;

std::vector<std::int64_t> taken(Sort& sort) {
  std::vector<std::int64_t> values;
  while (const Number* number = sort.take()) values.push_back(number->value);
  return values;
}

TEST(ExternalSort, GivesNothingOfNothing) {
  Sort sort{100};
  EXPECT_EQ(sort.take(), nullptr);
  EXPECT_EQ(sort.take(), nullptr);
}

TEST(ExternalSort, SortsWithRoomForAllForSomeAndForNext) {
  Random random{3};
  for (const std::size_t memory_bytes : {std::size_t{0}, std::size_t{100}, std::size_t{1} << 20}) {
    for (const int count : {1, 2, 3, 64, 1000}) {
      Sort sort{memory_bytes};
      std::vector<std::int64_t> expected;
      for (int i = 0; i < count; ++i) {
        expected.push_back(random.between(0, 500));
        sort.push({expected.back()});
      }
      std::ranges::sort(expected);
      EXPECT_EQ(taken(sort), expected) << memory_bytes << " " << count;
    }
  }
}

TEST(ExternalSort, BeginsAnewOnceItIsEmpty) {
  Sort sort{50};
  for (int round = 0; round < 2; ++round) {
    for (const std::int64_t value : {5, 3, 9, 1, 7, 7, 2, 8, 4}) sort.push({value});
    EXPECT_THAT(taken(sort), ::testing::ElementsAre(1, 2, 3, 4, 5, 7, 7, 8, 9));
  }
}

TEST(SpillFile, LeavesNoNameBehind) {
  const testing::ScratchDirectory scratch;
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before != nullptr ? before : "";
  setenv("TMPDIR", scratch.path().c_str(), 1);
  EXPECT_NO_THROW(SpillFile{});
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path())) << "it has no name";
  before != nullptr ? setenv("TMPDIR", kept.c_str(), 1) : unsetenv("TMPDIR");
}

}  // namespace
}  // namespace longhaul::trace
