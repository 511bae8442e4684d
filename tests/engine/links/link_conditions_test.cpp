// The weather on ranks: what an outage holds, that all see the same, that stamps follow it. Clock
// times are asserted from below alone: a host may always be slower.
#include <memory>

#include "device/cpu_devices.hpp"
#include "engine/engine.hpp"
#include "harness/session/link_conditions_run.hpp"
#include "plan/link_model/weather.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/plan.hpp"
#include "schedule/generators/generate.hpp"
#include "support/cells.hpp"
#include "support/ranks/ranks_fixture.hpp"

namespace longhaul::testing {
namespace {

using namespace std::chrono_literals;

/// Two datacenters, half of the stages in each; messages take 300 us and the latency.
Scenario stages_in_two_sites(int stages, Duration latency) {
  return spread(uniform_scenario(stages, 4, 500us), 2, latency, 300us);
}

/// A stage with replicas, half of them in each of two datacenters.
Scenario replicas_in_two_sites(int replicas) {
  const Scenario sites = stages_in_two_sites(2, 1ms);
  Scenario scenario = uniform_scenario(1, 2, 500us);
  scenario.parallel.replicas = replicas;
  scenario.datacenters = sites.datacenters;
  scenario.links = sites.links;
  scenario.placement.clear();
  for (int rank = 0; rank < replicas; ++rank)
    scenario.placement.push_back(DatacenterId{2 * rank / replicas});
  return scenario;
}

class WeatherTest : public OnRanks {
protected:
  /// Plays one iteration; this rank's stamps. The weather begins with it.
  OpTimes play(const Plan& plan, const plan::Weather& weather, int iteration = 0) {
    device::TimedDevice device;
    engine::EngineOptions options;
    ranks().watchdog().watch(&plan, 10s);
    engine::Engine engine{plan, ranks(), device, options};
    began_ = iteration < 0 ? kNever : harness::begin_weather(ranks(), {});
    const engine::IterationResult result = engine.run(iteration, {&weather, began_});
    ranks().watchdog().watch(nullptr, {});
    wrong_ = ranks().world().sum(result.checks.wrong());
    return result.times;
  }
  /// Messages of this rank, over links between datacenters.
  static std::vector<OpId> crossing(const Plan& plan, OpKind kind) {
    std::vector<OpId> found;
    const OpRange mine = ops_of_rank(plan, ranks().self());
    for (std::uint32_t i = mine.first; i < mine.first + mine.count; ++i)
      if (plan.ops[i].kind == kind && plan.crosses_datacenters(OpId{i})) found.push_back(OpId{i});
    return found;
  }

  TimePoint began_{};
  std::int64_t wrong_ = 0;
};

RANKS_TEST(WeatherTest, MessagesUnderAnOutageArriveBehindIt) {
  NEEDS_RANKS(2);
  Scenario scenario = stages_in_two_sites(ranks().count(), 3ms);
  for (Link& link : scenario.links) link.weather.outages = {{0s, 60ms}};
  for (const Arrangement arrangement : {Arrangement::decoupled, Arrangement::grouped}) {
    const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario, arrangement);
    const plan::Weather weather{plan, scenario};
    const OpTimes times = play(plan, weather);
    for (const OpId send : crossing(plan, OpKind::send))
      EXPECT_GE(times[index(send)].end, began_ + 60ms) << to_text(plan, send);
    for (const OpId recv : crossing(plan, OpKind::recv))
      EXPECT_GE(times[index(recv)].end, began_ + 63ms) << to_text(plan, recv);
    EXPECT_EQ(wrong_, 0);
  }
}

/// Each leg of a piece: the WAN is out, the network inside a datacenter is not.
RANKS_TEST(WeatherTest, RelayedPiecesWaitOnTheWanAlone) {
  NEEDS_RANKS(4);
  if (ranks().count() != 4) GTEST_SKIP() << "a plan of 4 ranks";
  Scenario scenario = cell_of(2, Bytes{100'000});
  for (Link& link : scenario.links) link.weather.outages = {{0s, 60ms}};
  const Plan plan =
      plan::lower(in_cells(schedule::generate("1f1b", scenario), scenario, 2), scenario);
  const plan::Weather weather{plan, scenario};
  const OpTimes times = play(plan, weather);
  const OpRange mine = ops_of_rank(plan, ranks().self());
  int held = 0;
  for (std::uint32_t i = mine.first; i < mine.first + mine.count; ++i) {
    const OpId id{i};
    if (plan.op(id).kind != OpKind::recv || plan.op(id).leg != MessageLeg::wan) continue;
    ++held;
    EXPECT_GE(times[i].end, began_ + 60ms) << to_text(plan, id);
  }
  EXPECT_GT(ranks().world().sum(held), 0);
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].leg == MessageLeg::scatter) {
      EXPECT_EQ(weather.outage_left(OpId{i}, 0s), 0s) << to_text(plan, OpId{i});
    }
  }
  EXPECT_EQ(wrong_, 0);
}

RANKS_TEST(WeatherTest, CollectivesAcrossDatacentersWaitForAnOutage) {
  NEEDS_RANKS(2);
  Scenario scenario = replicas_in_two_sites(ranks().count());
  for (Link& link : scenario.links) link.weather.outages = {{0s, 40ms}};
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  const plan::Weather weather{plan, scenario};
  const OpTimes times = play(plan, weather);
  const OpRange mine = ops_of_rank(plan, ranks().self());
  int collectives = 0;
  for (std::uint32_t i = mine.first; i < mine.first + mine.count; ++i) {
    if (!is_step(plan.ops[i]) || plan.ops[i].kind != OpKind::recv) continue;
    if (!plan.crosses_datacenters(OpId{i})) continue;
    ++collectives;
    EXPECT_GE(times[i].end, began_ + 40ms) << to_text(plan, OpId{i});
  }
  EXPECT_GT(ranks().world().sum(collectives), 0);
  EXPECT_EQ(wrong_, 0);
}

/// The time of a message by the receiver's clock is the weather's time for it, or more.
RANKS_TEST(WeatherTest, StampsFollowTheWeather) {
  NEEDS_RANKS(2);
  Scenario scenario = stages_in_two_sites(ranks().count(), 2ms);
  LinkTrace trace;
  trace.gives_bandwidth = true;
  const Bandwidth rate = scenario.links.front().bandwidth;
  trace.states = {{0s, {}, rate}, {3ms, {}, Bandwidth{rate.bits_per_second() / 8}}};
  for (Link& link : scenario.links) {
    link.weather.trace = std::make_shared<const LinkTrace>(trace);
    link.jitter.latency = link.jitter.transfer = 0.5;
  }
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  const plan::Weather weather{plan, scenario};
  for (int iteration = 0; iteration < 3; ++iteration) {
    const OpTimes times = play(plan, weather, iteration);
    const auto number = static_cast<std::uint64_t>(iteration);
    for (const OpId recv : crossing(plan, OpKind::recv)) {
      const OpTime& time = times[index(recv)];
      const Duration hold = weather.hold(OpId{plan.op(recv).match}, number, time.start - began_);
      EXPECT_GE(time.end - time.start, hold + weather.latency(recv, number, 0s))
          << to_text(plan, recv);
    }
    EXPECT_EQ(wrong_, 0);
  }
}

RANKS_TEST(WeatherTest, AllRanksSeeTheSameFromOneSeed) {
  NEEDS_RANKS(2);
  Scenario scenario = stages_in_two_sites(ranks().count(), 2ms);
  for (Link& link : scenario.links) {
    link.jitter.latency = link.jitter.transfer = 0.3;
    link.weather.loss = {0.2, 50ms};
    link.weather.outages = {{5ms, 20ms}};
  }
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  const auto answers = [&](std::uint64_t seed) {
    Scenario seeded = scenario;
    seeded.run.seed = seed;
    const plan::Weather weather{plan, seeded};
    std::int64_t digest = 0;
    for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
      for (std::uint64_t iteration = 0; iteration < 4; ++iteration) {
        for (const Duration at : {Duration{-1s}, Duration{0}, Duration{7ms}, Duration{1s}}) {
          if (plan.ops[i].kind == OpKind::send)
            digest += weather.hold(OpId{i}, iteration, at).count() * (i + 1);
          if (plan.ops[i].kind == OpKind::recv)
            digest ^= weather.latency(OpId{i}, iteration, at).count() * (i + 1);
        }
      }
    }
    return digest;
  };
  const std::int64_t mine = answers(1);
  EXPECT_EQ(ranks().world().minimum(mine), ranks().world().maximum(mine));
  EXPECT_NE(mine, answers(2));
}

RANKS_TEST(WeatherTest, BeginsAtOneMomentOnAllClocks) {
  const TimePoint before = now();
  const TimePoint began = harness::begin_weather(ranks(), {});
  EXPECT_EQ(ranks().world().minimum(began.count()), ranks().world().maximum(began.count()));
  EXPECT_LE(began, now());
  if (ranks().is_first()) {
    EXPECT_GE(began, before);
  }
  comm::ClockOffset clock;  // as if each rank were on a host of its own
  clock.offset = 1ms * self();
  const TimePoint aligned = harness::begin_weather(ranks(), clock) + clock.offset;
  EXPECT_EQ(ranks().world().minimum(aligned.count()), ranks().world().maximum(aligned.count()));
  const TimePoint earlier = harness::begin_weather(ranks(), {}, 10s);
  EXPECT_LE(earlier, now() - 10s) << "it is so old already";
}

RANKS_TEST(WeatherTest, WarmUpMeetsNoOutage) {
  NEEDS_RANKS(2);
  Scenario scenario = stages_in_two_sites(ranks().count(), 1ms);
  for (Link& link : scenario.links) link.weather.outages = {{0s, std::chrono::hours{1}}};
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  const plan::Weather weather{plan, scenario};
  play(plan, weather, -1);
  EXPECT_EQ(wrong_, 0) << "and it has ended";
}

}  // namespace
}  // namespace longhaul::testing
