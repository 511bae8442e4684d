// A GPU that hears what the controller answers and has the last word on what it begins.
#include "prefill/live/live_rank.hpp"

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "live_played.hpp"

namespace longhaul::prefill {
namespace {

// An answer that takes its time to come: the prompt starts as the GPU hears of it.
TEST(LiveRank, CountsAnswersThatComeAfterTheStartThatTheyName) {
  const PlacedStretch stretch = gpipe_of_two(1ms);
  LivePlayed played{stretch, {}, {}};
  const LivePlan& live = played.live().live();
  const TrainingGraph graph{stretch.plan, stretch.times, 2};
  const LiveManners manners;
  LiveRankLog log;
  LiveRank rank{live, graph, stretch.served, 1, manners, log};
  std::vector<plan::OpEnd> heard;
  for (std::int32_t request = 0; request < 2; ++request) {
    const LiveAnswer answer{
        .request = request, .tokens = 20, .pipeline = 1, .start = 10ms + request * 20ms};
    heard.push_back({live.answers[static_cast<std::size_t>(request)], 0, 15ms, answer.words()});
  }
  const plan::Decision decision = rank.next(plan::PastEvents{15ms, 0, heard});
  ASSERT_TRUE(std::holds_alternative<plan::Draw>(decision));
  EXPECT_EQ(std::get<plan::Draw>(decision).op, live.slot(1, 0).front().first);
  EXPECT_EQ(log.tally.late_answers, 1);
  EXPECT_EQ(log.tally.latest_answer, 5ms);
}

/// GPU 0 of two, which is idle from 200 to 500 and from 1,100 to 1,400 ms, and is told of its
/// training as planned.
class FirstGpu {
public:
  /// What it begins at that time; -1: nothing.
  std::int32_t decide(Duration now) {
    for (std::size_t i = 0; i < stretch_.times.size(); ++i)
      if (const Duration end = stretch_.times[i].end; end > asked_ && end <= now)
        heard_.push_back({live_.training[i], 0, end, {}});
    asked_ = now;
    std::ranges::stable_sort(heard_, {}, &plan::OpEnd::end);
    const auto heard = std::exchange(heard_, {});
    const plan::Decision decision = rank_.next(plan::PastEvents{now, 0, heard});
    const auto* const drawn = std::get_if<plan::Draw>(&decision);
    return drawn == nullptr ? -1 : LiveAnswer::of(drawn->words).request;
  }
  void give(std::int32_t request, std::int32_t tokens, Duration start, Duration at) {
    const LiveAnswer answer{.request = request, .tokens = tokens, .pipeline = 0, .start = start};
    heard_.push_back({live_.answers[static_cast<std::size_t>(request)], 0, at, answer.words()});
  }
  [[nodiscard]] std::int64_t declined() const { return log_.tally.declined; }

private:
  PlacedStretch stretch_ = gpipe_of_two(1ms, {}, 2);
  LivePlayed played_{stretch_, {}, {}};
  const LivePlan& live_ = played_.live().live();
  TrainingGraph graph_{stretch_.plan, stretch_.times, 2};
  LiveManners manners_;
  LiveRankLog log_;
  LiveRank rank_{live_, graph_, stretch_.served, 0, manners_, log_};
  std::vector<plan::OpEnd> heard_;
  Duration asked_{};
};

// A prompt of 250 ms that it hears of at 300 ms is declined; the second bubble is filled with one
// of 200 ms, and then has no room for it.
TEST(LiveRank, LeavesABubbleToThePromptsThatAreMeantForIt) {
  FirstGpu gpu;
  EXPECT_EQ(gpu.decide(200ms), -1);
  gpu.give(0, 250, 200ms, 300ms);
  EXPECT_EQ(gpu.decide(300ms), -1);
  EXPECT_EQ(gpu.decide(900ms), -1);
  EXPECT_EQ(gpu.declined(), 1);
  gpu.give(1, 200, 1100ms, 1050ms);
  EXPECT_EQ(gpu.decide(1050ms), -1);
  EXPECT_EQ(gpu.decide(1100ms), 1);
  EXPECT_EQ(gpu.decide(1300ms), -1);
}

// It was busy until 450 ms: when it hears of an answer, a block that ended after that has ended.
TEST(LiveRank, KnowsWhichBubbleAPromptIsMeantFor) {
  FirstGpu gpu;
  EXPECT_EQ(gpu.decide(100ms), -1);
  gpu.give(0, 100, 1100ms, 150ms);
  EXPECT_EQ(gpu.decide(450ms), -1);
  EXPECT_EQ(gpu.decide(900ms), -1);
  EXPECT_EQ(gpu.decide(1000ms), -1);
  EXPECT_EQ(gpu.decide(1100ms), 0);
  EXPECT_EQ(gpu.declined(), 0);
}

}  // namespace
}  // namespace longhaul::prefill
