#include "prefill/bubbles/bubbles.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "prefill/instances.hpp"

namespace longhaul::prefill {
namespace {

using ::testing::ElementsAre;

TEST(FindBubbles, AreThoseOfGpipeAndOneIsAroundTheIterationsEnd) {
  const IterationBubbles found = find_bubbles(gpipe_rows(), 2);
  EXPECT_EQ(found.period, 900ms);
  EXPECT_EQ(found.busy, 1200ms);
  EXPECT_DOUBLE_EQ(found.busy_ratio(), 1200.0 / 1800);
  EXPECT_THAT(found.bubbles,
              ElementsAre(Bubble{0, 200ms, 500ms, 1, 2}, Bubble{1, 700ms, 1000ms, 7, 4}));
}

TEST(FindBubbles, BlocksThatOverlapCountOnce) {
  const std::vector<TimelineRow> rows{block_row(0, 0, 10ns, 30ns), block_row(0, 1, 20ns, 25ns),
                                      block_row(0, 2, 30ns, 40ns), block_row(1, 3, 0ns, 50ns)};
  const IterationBubbles found = find_bubbles(rows, 2);
  EXPECT_EQ(found.busy, 80ns);
  EXPECT_THAT(found.bubbles, ElementsAre(Bubble{0, 40ns, 60ns, 2, 0}));
}

TEST(FindBubbles, OneThatBeginsWithTheIterationStandsAtItsBegin) {
  const std::vector<TimelineRow> rows{block_row(0, 0, 10ns, 50ns)};
  EXPECT_THAT(find_bubbles(rows, 1).bubbles, ElementsAre(Bubble{0, 0ns, 10ns, 0, 0}));
}

TEST(FindBubbles, AGpuWithoutBlocksIsOneBubble) {
  const std::vector<TimelineRow> rows{block_row(0, 0, 0ns, 50ns)};
  EXPECT_THAT(find_bubbles(rows, 2).bubbles, ElementsAre(Bubble{1, 0ns, 50ns, -1, -1}));
}

TEST(FindBubbles, MessagesAndOpsThatDidNotRunKeepNoGpuBusy) {
  std::vector<TimelineRow> rows = gpipe_rows();
  TimelineRow message = block_row(0, 9, 200ms, 950ms);
  message.kind = RowKind::send;
  rows.push_back(message);
  const IterationBubbles found = find_bubbles(rows, 2);
  EXPECT_EQ(found.period, 950ms);
  EXPECT_EQ(found.busy, 1200ms);
}

TEST(FindBubbles, BusyAndIdleAddUpToAllTime) {
  Random random{7};
  for (int instance = 0; instance < 500; ++instance) {
    const int gpus = static_cast<int>(random.between(1, 4));
    const IterationBubbles found = find_bubbles(random_rows(random, gpus), gpus);
    Duration idle{};
    for (const Bubble& bubble : found.bubbles) {
      EXPECT_GT(bubble.length(), 0ns);
      EXPECT_LT(bubble.start, found.period);
      idle += bubble.length();
    }
    EXPECT_EQ(found.busy + idle, gpus * found.period);
    Duration by_length{};
    for (const LengthClass& length : idle_by_length(found)) by_length += length.idle;
    EXPECT_EQ(by_length, idle);
  }
}

TEST(IdleByLength, PutsEveryBubbleIntoItsClass) {
  const std::vector<LengthClass> classes = idle_by_length(find_bubbles(gpipe_rows(), 2));
  ASSERT_EQ(classes.size(), 1U);
  EXPECT_EQ(classes[0].below, 500ms);
  EXPECT_EQ(classes[0].bubbles, 2);
  EXPECT_EQ(classes[0].idle, 600ms);
}

}  // namespace
}  // namespace longhaul::prefill
