#include "comm/group/thread_group.hpp"

#include <cstring>
#include <numeric>
#include <stdexcept>

#include <gmock/gmock.h>

#include "base/error.hpp"
#include "comm/group/communicator.hpp"
#include "comm/group/session.hpp"
#include "comm/threads/thread_transport.hpp"

namespace longhaul::comm {
namespace {

using ::testing::ElementsAre;

/// Runs `body` on threads; what each says, by rank. `Value` is no bool: vectors pack those
/// together.
template <typename Value>
std::vector<Value> on_threads(int ranks, const std::function<Value(Communicator&)>& body) {
  std::vector<Value> said(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&] {
    auto world = Communicator::world();
    said[static_cast<std::size_t>(world.rank())] = body(world);
  });
  return said;
}

TEST(ThreadRanks, AreTheWorldWithinAndNotBehind) {
  EXPECT_EQ(this_thread_rank(), nullptr);
  const auto ranks = on_threads<int>(3, [](const Communicator& world) {
    EXPECT_EQ(world.size(), 3);
    EXPECT_TRUE(world.is_of_threads());
    EXPECT_EQ(world_rank(), world.rank());
    EXPECT_TRUE(has_thread_ranks());
    return world.rank();
  });
  EXPECT_THAT(ranks, ElementsAre(0, 1, 2));
  EXPECT_EQ(this_thread_rank(), nullptr);
  EXPECT_FALSE(has_thread_ranks());
}

TEST(ThreadRanks, GatherBroadcastAndReduceManyTimes) {
  const auto right = on_threads<int>(4, [](const Communicator& world) {
    bool ok = true;
    const auto me = static_cast<std::int64_t>(world.rank());
    for (int round = 0; round < 200; ++round) {
      const int root = round % 4;
      const std::string text =
          world.broadcast(world.rank() == root ? std::to_string(round) : "no", root);
      ok = ok && text == std::to_string(round);
      ok = ok && world.sum(me + round) == 6 + 4 * round && world.maximum(me) == 3 &&
           world.minimum(me) == 0;
      std::vector<int> counts;
      const std::vector<std::byte> mine(static_cast<std::size_t>(me), std::byte(me));
      const auto all = world.gather(mine, counts, root);
      if (world.rank() == root) {
        ok = ok && counts == std::vector<int>{0, 1, 2, 3} && all.size() == 6 &&
             all.front() == std::byte{1} && all.back() == std::byte{3};
      } else {
        ok = ok && all.empty() && counts.empty();
      }
      ok = ok && world.all_gather(10 * me) == std::vector<std::int64_t>{0, 10, 20, 30};
    }
    return ok ? 1 : 0;
  });
  EXPECT_THAT(right, ::testing::Each(1));
}

TEST(ThreadRanks, SplitByColorInOrderOfTheirKeys) {
  const auto said = on_threads<std::string>(5, [](const Communicator& world) {
    std::string text;
    for (int i = 0; i < 50; ++i) {  // one group must not be taken for the next
      const auto half = world.split(world.rank() % 2, -world.rank());
      text = fmt::format("{} of {}: {}", half.rank(), half.size(), half.sum(world.rank()));
    }
    return text;
  });
  EXPECT_THAT(said, ElementsAre("2 of 3: 6", "1 of 2: 4", "1 of 3: 6", "0 of 2: 4", "0 of 3: 6"));
}

TEST(ThreadRanks, MakeGroupsOfSomeWithoutTheOthers) {
  const auto said = on_threads<std::int64_t>(4, [](const Communicator& world) -> std::int64_t {
    if (world.rank() == 2) return -1;
    std::int64_t sum = 0;
    for (int i = 0; i < 50; ++i) {
      const std::array members{0, 1, 3};
      const auto group = world.subgroup(members, 7);
      sum = 10 * group.sum(world.rank()) + group.rank();
    }
    return sum;
  });
  EXPECT_THAT(said, ElementsAre(40, 41, -1, 42));
}

TEST(ThreadRanks, TellThatTheyWait) {
  std::atomic<int> looks = 0;
  run_thread_ranks(2, [&] {
    auto world = Communicator::world();
    if (world.rank() == 0) {
      world.on_wait([&](Duration waited) {
        EXPECT_GE(waited, Duration::zero());
        ++looks;
      });
    } else {
      while (looks < 3) std::this_thread::yield();
    }
    world.barrier();
  });
  EXPECT_GE(looks, 3);
}

TEST(ThreadRanks, EndTogetherWhenOneThrows) {
  for (const int thrower : {0, 2}) {
    EXPECT_THROW(on_threads<int>(3,
                                 [&](const Communicator& world) {
                                   world.barrier();
                                   if (world.rank() == thrower) throw std::out_of_range{"mine"};
                                   world.barrier();
                                   ADD_FAILURE() << "went on without rank " << thrower;
                                   return 0;
                                 }),
                 std::out_of_range)
        << "what came first, not what it led to";
  }
}

TEST(ThreadRanks, WhatAWatchdogThrowsEndsAll) {
  EXPECT_THROW(run_thread_ranks(3,
                                [] {
                                  auto world = Communicator::world();
                                  if (world.rank() == 1)
                                    world.on_wait([](Duration) { fail("too long"); });
                                  if (world.rank() == 2) (void)world.receive(0);  // for ever
                                  world.barrier();
                                }),
               Error);
}

std::vector<std::byte> bytes_of(const std::vector<std::uint16_t>& numbers) {
  const auto bytes = std::as_bytes(std::span{numbers});
  return {bytes.begin(), bytes.end()};
}

/// Rounded once, after the sum: 256 + 1 + 1 is 258 in bf16, though 256 + 1 is 256.
TEST(ThreadCollectives, SumBf16InFp32) {
  const auto large = bytes_of({0x4380});
  const auto one = bytes_of({0x3f80});
  std::vector<std::byte> results(6);
  const std::span all{results};
  const std::array members{Exchange{NumberType::bf16, large, all.subspan(0, 2)},
                           Exchange{NumberType::bf16, one, all.subspan(2, 2)},
                           Exchange{NumberType::bf16, one, all.subspan(4, 2)}};
  exchange_among(CollectiveKind::all_reduce, members);
  EXPECT_EQ(results, bytes_of({0x4381, 0x4381, 0x4381}));
}

}  // namespace
}  // namespace longhaul::comm
