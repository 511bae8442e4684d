#include "base/index.hpp"

#include <string>
#include <type_traits>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace longhaul {
namespace {

using ::testing::ElementsAre;

static_assert(at(3) == 3u);
static_assert(next(DeviceId{3}) == DeviceId{4});
static_assert(previous(DeviceId{3}) == DeviceId{2});
static_assert(next_in_ring(ReplicaId{2}, 3) == ReplicaId{0});
static_assert(sizeof(ReplicaId) == sizeof(int));

// A counted id is its number where one is wanted; a number, or another kind's id, is no id.
template <typename Left, typename Right>
concept Equals = requires(Left left, Right right) {
  left == right;
};
static_assert(sizeof(ChunkId) == sizeof(int));
static_assert(std::is_trivially_copyable_v<ChunkId>);
static_assert(ChunkId{3} + 1 == 4 && ChunkId{3} < 4 && at(ChunkId{3}) == 3u);
static_assert(next(ChunkId{3}) == ChunkId{4} && previous(MicrobatchId{3}) == MicrobatchId{2});
static_assert(std::is_convertible_v<ChunkId, int> && !std::is_convertible_v<int, ChunkId>);
static_assert(!std::is_constructible_v<ChunkId, MicrobatchId>);
static_assert(!std::is_convertible_v<StageId, ChunkId>);
static_assert(Equals<ChunkId, ChunkId> && !Equals<ChunkId, MicrobatchId>);

TEST(Ids, AreTheirNumbersInText) {
  EXPECT_EQ(fmt::format("device {} of replica {:2}", DeviceId{3}, ReplicaId{1}),
            "device 3 of replica  1");
  EXPECT_EQ(fmt::format("chunk {} of microbatch {:2}", ChunkId{3}, MicrobatchId{1}),
            "chunk 3 of microbatch  1");
  EXPECT_THAT(numbers(std::vector{DeviceId{1}, DeviceId{0}}), ElementsAre(1, 0));
}

TEST(IdRange, GivesEveryIdOnce) {
  std::vector<DeviceId> found;
  for (const DeviceId device : ids<DeviceId>(3)) found.push_back(device);
  EXPECT_THAT(found, ElementsAre(DeviceId{0}, DeviceId{1}, DeviceId{2}));
  for (const DeviceId device : ids<DeviceId>(0)) FAIL() << number(device);
}

TEST(IndexedVector, IsIndexedByItsIds) {
  IndexedVector<ReplicaId, std::string> names(2, "a");
  names[ReplicaId{1}] = "b";
  EXPECT_EQ(names.push_back("c"), ReplicaId{2});
  EXPECT_EQ(names.count(), 3);
  std::string all;
  for (const ReplicaId replica : names.ids()) all += names[replica];
  EXPECT_EQ(all, "abc");
  EXPECT_TRUE(names.contains(ReplicaId{2}));
  EXPECT_FALSE(names.contains(ReplicaId{3}));
  EXPECT_FALSE(names.contains(ReplicaId{-1}));
  EXPECT_EQ(names, (IndexedVector<ReplicaId, std::string>{"a", "b", "c"}));
}

#ifndef NDEBUG
TEST(IndexedVectorDeathTest, SaysWhichIndexIsOutside) {
  const IndexedVector<ReplicaId, int> numbers{1, 2};
  EXPECT_DEATH(static_cast<void>(numbers[ReplicaId{2}]), "index 2 into a table of 2");
  EXPECT_DEATH(static_cast<void>(at(-1)), "index -1 into a table");
}
#endif

}  // namespace
}  // namespace longhaul
