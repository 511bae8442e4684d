#include "plan/link_model/link_timeline.hpp"

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "support/weather.hpp"

namespace longhaul::plan {
namespace {

TEST(LinkTimeline, FindsItsWayInALongTrace) {
  constexpr int kStates = 100'000;
  std::vector<LinkState> states;
  for (int i = 0; i < kStates; ++i) states.push_back({i * 10ms, Duration{i}, 1_Gbps});
  Link link;
  link.weather.trace = testing::trace_of(std::move(states));
  link.weather.repeat = kStates * 10ms;
  for (int i = 0; i < kStates; ++i) link.weather.outages.push_back({i * 10ms + 3ms, 1ms});
  const LinkTimeline timeline{link};
  Random random{3};
  for (int i = 0; i < 200'000; ++i) {
    const Duration time{random.between(0, 1'000'000'000'000 - 1)};
    const std::int64_t state = time / 10ms;
    const Duration within = time % 10ms;
    const LinkTimeline::Stretch found = timeline.at(time);
    ASSERT_EQ(found.latency, Duration{state});
    ASSERT_EQ(found.out, within >= 3ms && within < 4ms);
    ASSERT_EQ(found.until, state * 10ms + (within < 3ms ? 3ms : within < 4ms ? 4ms : 10ms));
    ASSERT_EQ(timeline.latency(time + 3000s), Duration{state});
  }
}

TEST(LinkTimeline, EndsWhereNothingChangesAnyMore) {
  Link link;
  link.latency = 5ms;
  EXPECT_EQ(LinkTimeline{link}.at(1h).until, Duration::max());
  EXPECT_EQ(LinkTimeline{link}.at(-1ns).until, 0ns);
  link.weather.outages = {{1s, 1s}};
  EXPECT_EQ(LinkTimeline{link}.at(2s).until, Duration::max());
  EXPECT_FALSE(LinkTimeline{link}.at(2s).out);
  EXPECT_TRUE(LinkTimeline{link}.at(1s).out);
}

}  // namespace
}  // namespace longhaul::plan
