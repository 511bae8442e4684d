#include "engine/events/op_board.hpp"

#include <gtest/gtest.h>

#include "comm/group/thread_group.hpp"
#include "engine/ranks.hpp"

namespace longhaul::engine {
namespace {

/// Plays `body` on two ranks that are threads, each with its board; `meet` waits for the other.
template <typename Body>
void on_two(Body&& body) {
  comm::run_thread_ranks(2, [&] {
    Ranks ranks{WatchdogOptions{}};
    OpBoard board{ranks.host_ranks()};
    board.join();
    ranks.world().barrier();
    body(ranks.is_first(), board, [&] { ranks.world().barrier(); });
    ranks.world().barrier();
  });
}

OpNews news_of(std::uint32_t op) { return {op, op, 0, OpNews::Kind::ended, 0}; }

// More than the ring has room for: what finds none is kept, and comes in order.
TEST(OpBoard, LosesNothingWhereItsReaderIsSlow) {
  on_two([](bool first, OpBoard& board, const auto& meet) {
    constexpr std::uint32_t kAll = 5000;
    if (first)
      for (std::uint32_t op = 0; op < kAll; ++op) board.publish(news_of(op));
    meet();
    std::vector<OpNews> heard;
    for (int round = 0; round < 10; ++round) {
      if (!first) board.read(heard);
      meet();
      if (first) board.flush();
      meet();
    }
    if (first) {
      EXPECT_FALSE(board.has_backlog());
      return;
    }
    ASSERT_EQ(heard.size(), kAll);
    for (std::uint32_t op = 0; op < kAll; ++op) EXPECT_EQ(heard[op].op, op);
  });
}

TEST(OpBoard, WhoHasLeftHoldsNoOneUp) {
  on_two([](bool first, OpBoard& board, const auto& meet) {
    if (!first) board.leave();
    meet();
    if (!first) return;
    for (std::uint32_t op = 0; op < 5000; ++op) board.publish(news_of(op));
    EXPECT_FALSE(board.has_backlog());
  });
}

TEST(OpBoard, IsQuietWhenAllAreAndNothingIsOnItsWay) {
  on_two([](bool first, OpBoard& board, const auto& meet) {
    board.set_quiet(true);
    meet();
    EXPECT_TRUE(board.all_quiet());
    meet();
    if (first) board.count_sent();
    meet();
    EXPECT_FALSE(board.all_quiet()) << "a word is on its way";
    meet();
    if (!first) board.count_received();
    if (first) board.publish(news_of(1));
    meet();
    EXPECT_FALSE(board.all_quiet()) << "news are not read";
    meet();
    std::vector<OpNews> heard;
    if (!first) board.read(heard);
    if (!first) board.set_quiet(false);
    meet();
    EXPECT_FALSE(board.all_quiet());
  });
}

}  // namespace
}  // namespace longhaul::engine
