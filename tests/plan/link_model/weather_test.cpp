// Hand-computed holds, latencies and collectives of small plans. A message of 1 MB takes 8 ms at
// 1 Gbps; `there` is the first one from stage 0 to stage 1.
#include "plan/link_model/weather.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include "plan/link_model/link_timeline.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "support/plans.hpp"
#include "support/weather.hpp"

namespace longhaul::plan {
namespace {

using testing::trace_of;
using testing::two_sites;

/// A scenario with its plan and weather, and its first message from stage 0 to stage 1.
struct Case {
  explicit Case(Scenario of) : scenario{std::move(of)} {}
  Case(const Case&) = delete;  // the weather looks at this plan

  Scenario scenario;
  Plan plan = lower(schedule::generate("gpipe", scenario), scenario);
  Weather weather{plan, scenario};
  OpId send = testing::find(plan, 0, OpKind::send, BlockKind::F, 0);
  OpId recv = testing::find(plan, 1, OpKind::recv, BlockKind::F, 0);

  [[nodiscard]] Duration hold(Duration begin) const { return weather.hold(send, 0, begin); }
  [[nodiscard]] Duration latency(Duration end) const { return weather.latency(recv, 0, end); }
};

template <typename Change>
Case with(Change change) {
  Scenario scenario = testing::two_sites();
  change(scenario.links[0]);  // dc0 to dc1
  return Case{std::move(scenario)};
}

const std::vector<LinkState> kSteps{
    {0ms, 10ms, 1_Gbps}, {100ms, 20ms, 500_Mbps}, {200ms, 5ms, 2_Gbps}};

TEST(Weather, ATransferTakesTheRateOfItsTime) {
  const Case c = with([](Link& link) { link.weather.trace = testing::trace_of(kSteps); });
  EXPECT_FALSE(c.weather.calm());
  EXPECT_EQ(c.hold(0ms), 8ms);
  EXPECT_EQ(c.hold(92ms), 8ms);  // ends with the step
  EXPECT_EQ(c.hold(100ms), 16ms);
  EXPECT_EQ(c.hold(500ms), 4ms);  // the last row holds on
}

TEST(Weather, ATransferAcrossAStepGoesOnAtTheNewRate) {
  const Case c = with([](Link& link) { link.weather.trace = testing::trace_of(kSteps); });
  EXPECT_EQ(c.hold(96ms), 4ms + 8ms);             // half, half at half the rate
  EXPECT_EQ(c.hold(199ms), 1ms + 3'750us);        // 1/16, 15/16 at 2 Gbps
  EXPECT_EQ(c.hold(99'999'999ns), 15'999'999ns);  // 1 ns of 8 ms is 2 ns of 16 ms
}

TEST(Weather, ATransferAcrossSeveralStepsAddsUp) {
  const Case c = with([](Link& link) {
    link.weather.trace = testing::trace_of({{0ms, 0ms, 1_Gbps},
                                            {2ms, 0ms, 500_Mbps},   // 2/8 done
                                            {6ms, 0ms, 100_Mbps},   // 4/8
                                            {26ms, 0ms, 1_Gbps}});  // 6/8
  });
  EXPECT_EQ(c.hold(0ms), 28ms);
}

TEST(Weather, NothingMovesInAnOutage) {
  const Case c = with([](Link& link) { link.weather.outages = {{30ms, 5ms}, {50ms, 1ms}}; });
  EXPECT_EQ(c.hold(22ms), 8ms);        // ends with its begin
  EXPECT_EQ(c.hold(27ms), 8ms + 5ms);  // across it
  EXPECT_EQ(c.hold(30ms), 5ms + 8ms);  // begins with it
  EXPECT_EQ(c.hold(32ms), 3ms + 8ms);  // begins in it
  EXPECT_EQ(c.hold(35ms), 8ms);        // begins with its end
  EXPECT_EQ(c.hold(29ms), 8ms + 5ms);
  EXPECT_EQ(c.hold(42ms), 8ms);
  EXPECT_EQ(c.hold(42'000'001ns), 8ms + 1ms);
  EXPECT_EQ(c.latency(32ms), 10ms);  // what is under way arrives
}

TEST(Weather, AStepWithinAnOutageCounts) {
  const Case c = with([](Link& link) {
    link.weather.trace = testing::trace_of(kSteps);
    link.weather.outages = {{98ms, 10ms}};
  });
  EXPECT_EQ(c.hold(96ms), 2ms + 10ms + 12ms);  // 2 of 8, then 6/8 of 16
}

TEST(Weather, BeforeItsStartLinksAreAsAtItsStart) {
  const Case c = with([](Link& link) {
    link.weather.trace = testing::trace_of({{0ms, 7ms, 500_Mbps}, {100ms, 9ms, 1_Gbps}});
    link.weather.outages = {{0ms, 2ms}};
  });
  EXPECT_EQ(c.hold(-50ms), 16ms);
  EXPECT_EQ(c.hold(-16ms), 16ms);
  EXPECT_EQ(c.hold(-5ms), 16ms + 2ms);
  EXPECT_EQ(c.latency(-1h), 7ms);
  EXPECT_EQ(c.weather.outage_left(c.send, -1ns), 0ns);
}

TEST(Weather, LatencyIsThatOfTheEndOfTheTransfer) {
  const Case c = with([](Link& link) { link.weather.trace = testing::trace_of(kSteps); });
  EXPECT_EQ(c.latency(99'999'999ns), 10ms);
  EXPECT_EQ(c.latency(100ms), 20ms);
  EXPECT_EQ(c.latency(1h), 5ms);
}

TEST(Weather, ATraceGivesWhatItsColumnsSay) {
  LinkTrace trace;
  trace.states = {{0ms, 0ms, 500_Mbps}, {100ms, 0ms, 2_Gbps}};
  trace.gives_bandwidth = true;
  const Case rates =
      with([&](Link& link) { link.weather.trace = std::make_shared<const LinkTrace>(trace); });
  EXPECT_EQ(rates.hold(0ms), 16ms);
  EXPECT_EQ(rates.latency(0ms), 10ms);
  trace.gives_bandwidth = false;
  trace.gives_latency = true;
  trace.states[0].latency = 3ms;
  const Case latencies =
      with([&](Link& link) { link.weather.trace = std::make_shared<const LinkTrace>(trace); });
  EXPECT_EQ(latencies.hold(0ms), 8ms);
  EXPECT_EQ(latencies.latency(0ms), 3ms);
}

TEST(Weather, ATraceMayRepeat) {
  const Case c = with([](Link& link) {
    link.weather.trace = testing::trace_of(kSteps);
    link.weather.repeat = 300ms;
  });
  EXPECT_EQ(c.hold(296ms), 4ms);
  EXPECT_EQ(c.hold(299ms), 1ms + 6ms);  // 2/8 at 2 Gbps, 6/8 at 1 Gbps
  EXPECT_EQ(c.hold(3'000'100ms), 16ms);
  EXPECT_EQ(c.latency(3'000'099'999us), 10ms);
}

TEST(Weather, InterfacesLimitTheRateToo) {
  Scenario scenario = testing::two_sites();
  scenario.nodes = {{DatacenterId{0}, 1, 800_Mbps, Bandwidth::unlimited()}};
  scenario.links[0].weather.trace = testing::trace_of(kSteps);
  const Case c{scenario};
  EXPECT_EQ(c.hold(0ms), 10ms);
  EXPECT_EQ(c.hold(100ms), 16ms);
  EXPECT_EQ(c.hold(95ms), 5ms + 8ms);
}

TEST(Weather, OneDirectionLeavesTheOtherAlone) {
  const Case c = with([](Link& link) { link.weather.outages = {{0ms, 1h}}; });
  const OpId back = testing::find(c.plan, 1, OpKind::send, BlockKind::B, 0);
  EXPECT_EQ(c.weather.hold(back, 0, 0ms), 8ms);
  EXPECT_EQ(c.hold(0ms), 1h + 8ms);
}

TEST(Weather, ALostMessageIsLateByTheDelay) {
  const Case c = with([](Link& link) { link.weather.loss = {1, 200ms}; });
  EXPECT_EQ(c.latency(0ms), 210ms);
  EXPECT_EQ(c.hold(0ms), 8ms);
  const Case unstated = with([](Link& link) { link.weather.loss = {1, {}}; });
  EXPECT_EQ(unstated.latency(0ms), 30ms);  // a round trip more
  const Case steps = with([](Link& link) {
    link.weather.loss = {1, {}};
    link.weather.trace = testing::trace_of(kSteps);
  });
  EXPECT_EQ(steps.latency(100ms), 60ms);
}

TEST(Weather, LosesMessagesAsOftenAsStated) {
  const Case c = with([](Link& link) { link.weather.loss = {0.01, 200ms}; });
  int lost = 0;
  for (std::uint64_t iteration = 0; iteration < 20'000; ++iteration)
    lost += c.weather.latency(c.recv, iteration, 0ms) > 10ms;
  EXPECT_NEAR(lost, 200, 3 * std::sqrt(200 * 0.99));  // three standard deviations
}

TEST(Weather, JitterIsThatOfJitteredPlans) {
  const Case c = with([](Link& link) { link.jitter = {0.2, 0.4, 0.5}; });
  JitteredPlan jittered{c.plan, c.scenario};
  for (const std::uint64_t iteration : {0U, 7U, 3U}) {
    const Plan& plan = jittered.in(iteration);
    EXPECT_EQ(c.weather.hold(c.send, iteration, 5ms), plan.op(c.send).duration);
    EXPECT_EQ(c.weather.latency(c.recv, iteration, 5ms), plan.op(c.recv).duration);
    EXPECT_NE(plan.op(c.send).duration, 8ms);
  }
}

TEST(Weather, JitterStretchesATransferAcrossAStep) {
  const Case c = with([](Link& link) {
    link.weather.trace = testing::trace_of(kSteps);
    link.jitter = {0, 0.4, 0};
  });
  const Case plain = with([](Link& link) { link.jitter = {0, 0.4, 0}; });
  const double factor = static_cast<double>(plain.hold(0ms).count()) / 8e6;
  EXPECT_EQ(c.hold(0ms), plain.hold(0ms));
  EXPECT_NEAR(static_cast<double>(c.hold(99ms).count()), 1e6 + (8e6 * factor - 1e6) * 2, 2);
}

TEST(Weather, SaysHowLongAnOutageLasts) {
  const Case c = with([](Link& link) { link.weather.outages = {{30ms, 5ms}, {35ms, 1ms}}; });
  EXPECT_EQ(c.weather.outage_left(c.send, 29ms), 0ms);
  EXPECT_EQ(c.weather.outage_left(c.send, 30ms), 6ms);  // they touch
  EXPECT_EQ(c.weather.outage_left(c.recv, 34ms), 2ms);
  EXPECT_EQ(c.weather.outage_left(c.send, 36ms), 0ms);
  EXPECT_EQ(c.weather.outage_left(testing::find(c.plan, 0, OpKind::compute, BlockKind::F, 0), 31ms),
            0ms);
}

TEST(Weather, IsCalmWhereNothingThatThePlanUsesVaries) {
  EXPECT_TRUE(Case{testing::two_sites()}.weather.calm());
  EXPECT_EQ(Case{testing::two_sites()}.hold(5ms), 8ms);
  EXPECT_EQ(Case{testing::two_sites()}.latency(5ms), 10ms);
  Scenario scenario = testing::two_sites();
  scenario.links.push_back({DatacenterId{0}, DatacenterId{0}, 0ms, 1_Gbps, Sharing::pair});
  scenario.links.back().weather.outages = {{0ms, 1h}};  // no rank sends inside dc0
  EXPECT_TRUE(Case{scenario}.weather.calm());
}

TEST(Weather, AnUnlimitedRateTakesNoTimeUntilTheTraceLimitsIt) {
  Scenario scenario = testing::two_sites();
  scenario.links[0].bandwidth = Bandwidth::unlimited();
  scenario.links[0].weather.trace =
      testing::trace_of({{0ms, 0ms, Bandwidth::unlimited()}, {100ms, 0ms, 1_Gbps}});
  scenario.links[0].weather.outages = {{50ms, 1ms}};
  const Case c{scenario};
  EXPECT_EQ(c.hold(0ms), 0ms);
  EXPECT_EQ(c.hold(50ms), 1ms);
  EXPECT_EQ(c.hold(100ms), 8ms);
}

TEST(TimeOfWork, IsExactAtOnePace) {
  for (const std::int64_t whole :
       {1LL, 3LL, 7LL, 999'999'937LL, (1LL << 53) + 1, (1LL << 58) - 1}) {
    const auto steady = [&](Duration) { return Pace{Duration{whole}, Duration::max(), false}; };
    EXPECT_EQ(time_of_work(Duration{123}, steady), Duration{whole});
  }
}

}  // namespace
}  // namespace longhaul::plan
