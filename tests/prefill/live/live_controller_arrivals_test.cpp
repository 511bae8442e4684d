// An open loop is answered as it arrives: with a place in this stretch, in a later one, or no.
#include <algorithm>
#include <tuple>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "live_played.hpp"

namespace longhaul::prefill {
namespace {

using Said = NotedArrivals::Said;

/// Of one kind, in the order in which it was said.
std::vector<Said> said_of(const NotedArrivals& noted, NewsKind kind) {
  std::vector<Said> all;
  std::ranges::copy_if(noted.said, std::back_inserter(all),
                       [&](const Said& each) { return each.kind == kind; });
  return all;
}

// Device 0 is idle from 200 to 500 ms, device 1 to 100 and from 700 on, of 900: six prompts, and
// the next two have their places in the next stretch when they come.
TEST(LiveArrivals, NameAPlaceInALaterStretchAtOnce) {
  const PlacedStretch stretch = gpipe_of_two(1ms);
  LivePlayed played{stretch, equal_requests(8, 100, {}), {}};
  EXPECT_EQ(played.play().decisions.size(), 6U);
  const auto places = said_of(played.noted(), NewsKind::placed);
  ASSERT_EQ(places.size(), 8U);
  EXPECT_EQ(places[6], (Said{6, NewsKind::placed, 0ms, 1, 900ms}));
  EXPECT_EQ(places[7], (Said{7, NewsKind::placed, 0ms, 0, 1100ms}));
  const LiveFilled second = played.play();
  ASSERT_EQ(second.decisions.size(), 2U);
  for (const std::size_t i : {0U, 1U}) {
    EXPECT_EQ(second.decisions[i].request, places[6 + i].request);
    EXPECT_EQ(second.decisions[i].arrival, -900ms);
    EXPECT_EQ(second.decisions[i].start, places[6 + i].start - 900ms);
    EXPECT_EQ(second.told[i], -900ms);
  }
  EXPECT_EQ(said_of(played.noted(), NewsKind::placed).size(), 8U) << "they were not moved";
  EXPECT_EQ(played.live().controller().clock(), 1'800ms);
}

// Of two stretches: twelve prompts of 100 ms, and the others find none open any more.
TEST(LiveArrivals, SayThatNoStretchOfTheRunHasRoomAtOnce) {
  const PlacedStretch stretch = gpipe_of_two(1ms);
  LiveOptions options;
  options.controller.stretches = 2;
  LivePlayed played{stretch, equal_requests(14, 100, {}), options};
  EXPECT_EQ(played.play().decisions.size(), 6U);
  EXPECT_EQ(said_of(played.noted(), NewsKind::placed).size(), 12U);
  EXPECT_EQ(said_of(played.noted(), NewsKind::refused),
            (std::vector{Said{12, NewsKind::refused}, Said{13, NewsKind::refused}}));
  EXPECT_EQ(played.noted().reasons[12], RefusalReason::closed);
  EXPECT_EQ(played.play().decisions.size(), 6U);
  played.live().controller().close();
  EXPECT_EQ(said_of(played.noted(), NewsKind::refused).size(), 2U);
}

// The seventh would end at 1,000 ms, the eighth at 1,200.
TEST(LiveArrivals, HoldALaterPlaceAgainstTheSlo) {
  PlacedStretch stretch = gpipe_of_two(1ms);
  stretch.served.front().model.slo_ttft = 1000ms;
  LivePlayed played{stretch, equal_requests(8, 100, {}), {}};
  (void)played.play();
  EXPECT_EQ(said_of(played.noted(), NewsKind::refused), (std::vector{Said{7, NewsKind::refused}}));
  EXPECT_EQ(played.noted().reasons[7], RefusalReason::slo);
  EXPECT_EQ(played.play().decisions.size(), 1U);
}

// Training takes a tenth longer than planned: the place in the next stretch is named by the
// expected end, and once more where it moves by more than a guard; nothing is refused that had one.
TEST(LiveArrivals, SayWhereAPlaceMoves) {
  PlacedStretch stretch = gpipe_of_two(1ms);
  stretch.served.front().model.slo_ttft = 1000ms;
  LivePlayed played{stretch, equal_requests(7, 100, {}), {}};
  (void)played.play(1.1);
  (void)played.play(1.1);
  const auto places = said_of(played.noted(), NewsKind::placed);
  ASSERT_GE(places.size(), 8U);
  EXPECT_EQ(places[6], (Said{6, NewsKind::placed, 0ms, 1, 900ms}));
  EXPECT_EQ(places.back(), (Said{6, NewsKind::placed, 990ms, 1, 990ms}));
  EXPECT_TRUE(said_of(played.noted(), NewsKind::refused).empty());
}

// What one leaves that goes is there for the next one: the seventh's, at 900 ms on device 1.
TEST(LiveArrivals, GiveThePlaceOfOneThatGoesToAnother) {
  const PlacedStretch stretch = gpipe_of_two(1ms);
  auto requests = equal_requests(8, 100, {});
  requests.push_back({8, 20ms, 100});
  LivePlayed played{stretch, requests, {}};
  played.noted().goes = {{10ms, 6}};
  (void)played.play();
  EXPECT_EQ(said_of(played.noted(), NewsKind::cancelled),
            (std::vector{Said{6, NewsKind::cancelled, 10ms}}));
  EXPECT_EQ(said_of(played.noted(), NewsKind::placed).back(),
            (Said{8, NewsKind::placed, 20ms, 1, 900ms}));
}

// Device 0 is drained when its turn would come: the eighth gets another place, on device 1.
TEST(LiveArrivals, MoveALaterPlaceFromAGpuThatIsDrained) {
  const PlacedStretch stretch = gpipe_of_two(1ms);
  LivePlayed played{stretch, equal_requests(8, 100, {}), {}};
  played.noted().drains = {600ms, 2000ms};
  (void)played.play();
  EXPECT_EQ(said_of(played.noted(), NewsKind::placed).back(),
            (Said{7, NewsKind::placed, 600ms, 1, 1600ms}));
  EXPECT_EQ(played.play().decisions.size(), 2U);
}

// Whatever blocks take, the first answer comes as the request does: not a nanosecond later.
TEST(LiveArrivals, AnswerEachAsItComes) {
  constexpr int kStretches = 3;
  std::map<NewsKind, int> first;
  int later = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Random random{derived_seed(seed, 0x6f6e6365)};
    PlacedStretch stretch = testing::random_stretch(random);
    auto requests = testing::random_requests(random);
    if (seed % 3 == 0) stretch.served.front().model.slo_ttft = stretch.bubbles.period;
    LiveOptions options;
    options.controller.stretches = kStretches;
    LivePlayed played{stretch, requests, options};
    const double factor = 1 + 0.1 * static_cast<double>(random.between(0, 3));
    Duration end{};
    for (int i = 0; i < kStretches; ++i) {
      (void)played.play(factor);
      ASSERT_EQ(played.live().controller().longest_decision(), 0ns);
      end += played.wall;
    }
    std::map<std::int64_t, Said> answers;
    for (const Said& each : played.noted().said) answers.try_emplace(each.request, each);
    for (const Request& each : requests) {
      if (each.arrival >= end) continue;
      ASSERT_TRUE(answers.contains(each.id)) << each.id;
      ASSERT_EQ(answers[each.id].at, each.arrival) << each.id;
      ++first[answers[each.id].kind];
      later += answers[each.id].start >= played.wall && each.arrival < played.wall;
    }
  }
  EXPECT_GT(first[NewsKind::placed], 1000);
  EXPECT_GT(first[NewsKind::refused], 500);
  EXPECT_GT(later, 300) << "places of the first stretch's requests in later ones";
}

TEST(LiveArrivals, RefuseAtOnce) {
  PlacedStretch stretch = gpipe_of_two(1ms);
  stretch.served.front().model.slo_ttft = 250ms;
  auto requests = equal_requests(3, 100, {});
  requests[0].tokens = 350;            // fits no bubble
  requests[1].tokens = 2000;           // above the profile
  requests.push_back({3, 20ms, 100});  // would end at 300 ms
  LivePlayed played{stretch, requests, {}};
  (void)played.play();
  EXPECT_EQ(said_of(played.noted(), NewsKind::refused),
            (std::vector{Said{0, NewsKind::refused, 0ms}, Said{1, NewsKind::refused, 0ms},
                         Said{3, NewsKind::refused, 20ms}}));
  EXPECT_EQ(said_of(played.noted(), NewsKind::placed),
            (std::vector{Said{2, NewsKind::placed, 0ms, 1, 0ms}}));
  EXPECT_EQ(
      played.noted().reasons,
      (std::map<std::int64_t, RefusalReason>{
          {0, RefusalReason::too_long}, {1, RefusalReason::profile}, {3, RefusalReason::slo}}));
}

}  // namespace
}  // namespace longhaul::prefill
