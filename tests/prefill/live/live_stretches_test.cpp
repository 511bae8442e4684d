// A controller that decides while a stretch is played, and the GPUs that have the last word: played
// by the simulator, which asks the sources that ranks ask.
#include "prefill/live/live_stretches.hpp"

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "live_played.hpp"

namespace longhaul::prefill {
namespace {

// Nothing differs from the plan: the controller gives what one gives that knows the plan alone, to
// the nanosecond, and GPUs start it then.
TEST(LiveStretches, PlaceAsThePlanDoesWhereNothingDiffersFromIt) {
  std::size_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const PlacedStretch stretch = testing::random_stretch(random);
    const auto requests = testing::random_requests(random);
    Controller planned{
        stretch.bubbles, stretch.served, PlacementPolicy::earliest, {false, 1, true}};
    std::vector<Decision> expected;
    for (const Decision& each : place_open_loop(planned, requests))
      if (!each.refused) expected.push_back(each);
    LiveOptions options;
    options.controller.policy = PlacementPolicy::earliest;
    LivePlayed played{stretch, requests, options};
    const LiveFilled filled = played.play();
    ASSERT_EQ(filled.decisions.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(filled.decisions[i].request, expected[i].request);
      ASSERT_EQ(filled.decisions[i].pipeline, expected[i].pipeline);
      ASSERT_EQ(filled.decisions[i].start, expected[i].start);
    }
    for (const FilledStage& stage : filled.filled.stages) {
      ASSERT_TRUE(played.ran(stage.op));
      ASSERT_EQ(played.results.times[index(stage.op)].start, stage.placed.start);
    }
    for (std::size_t i = 0; i < stretch.times.size(); ++i)
      ASSERT_EQ(played.results.times[index(filled.filled.training[i])].end, stretch.times[i].end);
    compared += expected.size();
  }
  EXPECT_GT(compared, 500U);
}

// All blocks take longer than anyone was told, by a part that no one knows: what ranks say of ends
// keeps prompts out of their way.
TEST(LiveStretches, DelayNoBlockOfSlowTraining) {
  std::size_t begun = 0;
  std::int64_t declined = 0;
  for (std::uint64_t seed = 200; seed < 260; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const PlacedStretch stretch = testing::random_stretch(random);
    LiveOptions options;
    if (seed % 2 == 0) {
      options.controller.backlog = BacklogOptions{.waiting = 8, .iterations = 1};
      options.controller.lead = Duration{random.between(0, 40'000)};
    }
    LivePlayed played{stretch, testing::random_requests(random), options};
    const double factor = 1 + 0.1 * static_cast<double>(random.between(0, 5));
    const LiveFilled filled = played.play(factor);
    ASSERT_EQ(played.bound(filled), 0);
    begun += filled.decisions.size();
    declined += played.live().tally().declined;
  }
  EXPECT_GT(begun, 300U);
  EXPECT_GT(declined, 0);
}

TEST(LiveStretches, FillBubblesFromABacklog) {
  const PlacedStretch stretch = gpipe_of_two(1ms);
  LiveOptions options;
  options.controller.backlog = BacklogOptions{.waiting = 16, .iterations = 1};
  LivePlayed played{stretch, equal_requests(10, 100, {}), options};
  const LiveFilled filled = played.play();
  // Device 0 from 200 to 500 ms; device 1 to 100, and from 700 to the end at 900.
  EXPECT_EQ(filled.decisions.size(), 6U);
  EXPECT_EQ(played.wall, 900ms);
  EXPECT_EQ(played.bound(filled), 0);
}

// Of device 0's 300 ms a guard of 40 leaves 260, which are counted as six guards.
TEST(LiveStretches, CountRoomsOfABacklogInWholeGuards) {
  const PlacedStretch stretch = gpipe_of_two(1ms, 40ms);
  LiveOptions options;
  options.controller.backlog = BacklogOptions{.waiting = 16, .iterations = 1};
  for (const auto& [tokens, placed] : {std::pair{240, 1U}, {241, 0U}}) {
    LivePlayed played{stretch, equal_requests(10, tokens, {}), options};
    EXPECT_EQ(played.play().decisions.size(), placed);
  }
}

// Of the planned 260 ms six guards of 40 are kept while the expected room is at most half a guard
// below these: answers that are heard 40 ms after the bubble opens leave 220.
TEST(LiveStretches, KeepThePlannedRoomUpToHalfAGuardBelowIt) {
  const PlacedStretch stretch = gpipe_of_two(1ms, 40ms);
  LiveOptions options;
  options.controller.backlog = BacklogOptions{.waiting = 16, .iterations = 1};
  options.controller.lead = {};
  for (const auto& [heard_after, placed] : {std::pair{40ms, 1U}, {41ms, 0U}}) {
    options.controller.heard_after = heard_after;
    LivePlayed played{stretch, equal_requests(10, 240, {}), options};
    EXPECT_EQ(played.play().decisions.size(), placed);
  }
}

// The first block of device 1 takes longer, and so closes the bubble of device 0, of 300 to 600 ms,
// later: from a whole guard on the room is the expected one.
TEST(LiveStretches, KeepThePlannedRoomUpToAGuardAboveIt) {
  Scenario scenario = gpipe_of_two(1ms, 40ms).scenario;
  scenario.parallel.microbatches = 3;
  const PlacedStretch stretch{scenario, "gpipe", 1};
  LiveOptions options;
  options.controller.backlog = BacklogOptions{.waiting = 16, .iterations = 1};
  for (const auto& [longer, placed] : {std::pair{39ms, 0U}, {40ms, 1U}}) {
    LivePlayed played{stretch, equal_requests(10, 250, {}), options};
    const auto takes = [longer = Duration{longer}](const Op& op) {
      const bool is_first = number(op.chunk) == 1 && number(op.microbatch) == 0;
      return is_first && op.block_kind == BlockKind::F ? op.duration + longer : op.duration;
    };
    EXPECT_EQ(played.play(takes).decisions.size(), placed);
  }
}

// Blocks that take up to 0.2% more than planned make bubbles some tenths of a millisecond longer,
// where 0.1 ms would be another guard. Each bubble is filled as planned.
TEST(LiveStretches, ChooseAsPlannedWhereARunDiffersByChance) {
  Scenario scenario = gpipe_of_two(1ms, 10ms).scenario;
  scenario.costs.backward.assign(2, 209'900us);  // device 0: bubbles of 299.9 ms
  scenario.parallel.microbatches = 6;
  PlacedStretch stretch{scenario, "gpipe", 4};
  stretch.served.front().serving.pipelines.pop_back();
  LiveOptions options;
  options.controller.backlog = BacklogOptions{.waiting = 32, .iterations = 4};
  std::vector<Request> requests = equal_requests(64, 0, {});
  Random lengths{3};
  for (Request& each : requests) each.tokens = lengths.between(20, 290);
  const auto chosen = [&](const std::function<Duration(const Op&)>& takes) {
    LivePlayed played{stretch, requests, options};
    const LiveFilled filled = played.play(takes);
    EXPECT_EQ(played.bound(filled), 0);
    EXPECT_EQ(played.live().tally().declined, 0);
    std::vector<std::int64_t> in_order;
    for (const Decision& each : filled.decisions) in_order.push_back(each.request);
    return in_order;
  };
  const auto planned = chosen([](const Op& block) { return block.duration; });
  EXPECT_GT(planned.size(), 8U);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Random jitter{seed};
    const auto takes = [&](const Op& block) {
      return block.duration + block.duration * jitter.between(0, 20) / 10'000;
    };
    EXPECT_EQ(chosen(takes), planned) << seed;
  }
}

// Device 1 is idle from the begin on: where answers are heard late 100 ms are no 100 ms any more.
TEST(LiveStretches, FillWhatIsOpenAlreadyFromWhenAnswersAreHeard) {
  const PlacedStretch stretch = gpipe_of_two(1ms);
  LiveOptions options;
  options.controller.backlog = BacklogOptions{.waiting = 16, .iterations = 1};
  options.controller.heard_after = 1ms;
  LivePlayed played{stretch, equal_requests(10, 100, {}), options};
  EXPECT_EQ(played.play().decisions.size(), 5U);
}

// Device 1 is idle to 100 ms, from 700 to 1,000 and from 1,600 to 1,800. In the second bubble the
// prompt of 50 takes 60, and that of 250 is declined, which the third cannot hold: others get it.
TEST(LiveStretches, FillABubbleThatWhatWasDeclinedDoesNotFit) {
  PlacedStretch stretch{gpipe_of_two(1ms).scenario, "gpipe", 2};
  auto& pipelines = stretch.served.front().serving.pipelines;
  pipelines.erase(pipelines.begin());
  LiveOptions options;
  options.controller.backlog = BacklogOptions{.waiting = 5, .iterations = 2};
  options.manners.takes = [](std::size_t, std::int32_t request, Duration whole) {
    return request == 1 ? 60ms : whole;
  };
  std::vector<Request> requests = equal_requests(5, 90, {});
  requests[0].tokens = 100;
  requests[1].tokens = 50;
  requests[2].tokens = 250;
  LivePlayed played{stretch, requests, options};
  std::vector<std::int64_t> tokens;
  for (const Decision& each : played.play().decisions) tokens.push_back(each.tokens);
  std::ranges::sort(tokens);
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{50, 90, 100, 100}));
  EXPECT_GT(played.live().tally().declined, 0);
}

// Estimated at 100 ms, and takes 380 from 200 on: training's block at 500 ms waits until 580, or
// until the end of the layer (of 8, 47.5 ms each) in which it got ready.
TEST(LiveStretches, FinishOrKillWhatOverruns) {
  PlacedStretch stretch = gpipe_of_two(1ms);
  ServedDimensions dimensions;
  dimensions.layers = 8;
  stretch.served.front().model.dimensions = dimensions;
  stretch.served.front().serving.pipelines.pop_back();
  LiveOptions options;
  options.manners.takes = [](std::size_t, std::int32_t, Duration) { return 380ms; };
  const std::vector<Request> one{{0, 150ms, 100}};
  LivePlayed finished{stretch, one, options};
  const LiveFilled filled = finished.play();
  EXPECT_EQ(finished.wall, 980ms);
  EXPECT_GE(finished.bound(filled), 1);
  options.manners.overrun = Overrun::kill;
  LivePlayed killed{stretch, one, options};
  (void)killed.play();
  EXPECT_EQ(killed.live().tally().killed, 1);
  EXPECT_EQ(killed.wall, 932'500us);
}

// Killed at 532.5 ms in the first iteration's bubble, it takes no time of the second's, which opens
// at 1,100 ms, as the controller expects it at 600 (it does not know yet that training is late).
TEST(LiveStretches, PlaceAfterAKilledPromptAsIfItWereGone) {
  PlacedStretch stretch{gpipe_of_two(1ms).scenario, "gpipe", 2};
  ServedDimensions dimensions;
  dimensions.layers = 8;
  stretch.served.front().model.dimensions = dimensions;
  stretch.served.front().serving.pipelines.pop_back();
  LiveOptions options;
  options.manners.overrun = Overrun::kill;
  options.manners.takes = [](std::size_t, std::int32_t request, Duration whole) {
    return request == 0 ? 380ms : whole;
  };
  LivePlayed played{stretch, {{0, 150ms, 100}, {1, 600ms, 100}}, options};
  const LiveFilled filled = played.play();
  EXPECT_EQ(played.live().tally().killed, 1);
  ASSERT_EQ(filled.decisions.size(), 2U);
  EXPECT_EQ(filled.decisions[1].start, 1100ms);
}

// The control: it starts whatever it has at once.
TEST(LiveStretches, HarmTrainingWhereGpusGiveNoWay) {
  const PlacedStretch stretch = gpipe_of_two(1ms);
  LiveOptions options;
  options.controller.backlog = BacklogOptions{.waiting = 16, .iterations = 1};
  options.manners.gives_way = false;
  options.manners.takes = [](std::size_t, std::int32_t, Duration whole) { return 2 * whole; };
  LivePlayed played{stretch, equal_requests(10, 100, {}), options};
  const LiveFilled filled = played.play();
  EXPECT_GT(played.bound(filled), 0);
  EXPECT_GT(played.wall, 900ms);
}

TEST(LiveStretches, WithdrawPromptsWhoseSenderHasGone) {
  class Leaving final : public Arrivals {
  public:
    void collect(Duration now, std::vector<Request>& arrived,
                 std::vector<std::int64_t>& cancelled) override {
      if (std::exchange(step_, 1) == 0)
        for (std::int64_t i = 0; i < 4; ++i) arrived.push_back({i, {}, 100});
      if (now < 150ms || step_ == 2) return;
      step_ = 2;
      cancelled = {0, 1, 2};
    }
    [[nodiscard]] Duration next_look(Duration now) const override {
      return now < 150ms ? Duration{150ms} : Duration::max();
    }
    [[nodiscard]] std::vector<std::int64_t> offered() const override { return {0, 1, 2, 3}; }

  private:
    int step_ = 0;
  };
  const PlacedStretch stretch = gpipe_of_two(1ms);
  Plan training = stretch.plan;
  training.ranks.push_back({});
  Leaving arrivals;
  const std::vector<Request> none;
  LiveStretches live{
      training, stretch.times, stretch.bubbles, stretch.served,
      none,     arrivals,      Rank{2},         {.controller = {}, .manners = {}, .slots = 8}};
  live.begin();
  const OpResults results = sim::simulate_results(live.plan());
  std::set<std::int32_t> begun;
  for (const BegunSlot& each : live.begun()) begun.insert(each.request);
  // 0 at 0 on device 1 is over by then; 1 to 3 wait for device 0's bubble at 200.
  EXPECT_EQ(begun, (std::set<std::int32_t>{0, 3}));
  (void)live.controller().end_stretch(900ms, begun);
  EXPECT_EQ(live.controller().cancelled().size(), 2U);
}

/// A prompt of two stages takes what it really takes in equal parts, as its estimate was.
TEST(LiveStretches, SharesRealTimesAmongStages) {
  Scenario scenario = serving_scenario(2, 2, linear_model(1ms, 2));
  scenario.costs.forward.assign(2, 100ms);
  scenario.costs.backward.assign(2, 200ms);
  scenario.costs.message.assign(2, Bytes{});
  scenario.served.front().hop = 10ms;
  const PlacedStretch stretch{scenario, "gpipe", 1};
  LiveOptions options;
  options.manners.takes = [](std::size_t, std::int32_t, Duration whole) { return whole + 21ns; };
  LivePlayed played{stretch, {{0, 200ms, 100}}, options};
  const LiveFilled filled = played.play();
  ASSERT_EQ(filled.filled.stages.size(), 2U);
  const auto time = [&](std::size_t i) {
    return played.results.times[index(filled.filled.stages[i].op)];
  };
  EXPECT_EQ(time(0).start, 200ms);
  EXPECT_EQ(time(0).end, 250ms + 11ns);
  EXPECT_EQ(time(1).start, 260ms + 11ns);
  EXPECT_EQ(time(1).end, 310ms + 21ns);
}

}  // namespace
}  // namespace longhaul::prefill
