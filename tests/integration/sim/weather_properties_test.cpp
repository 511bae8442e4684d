// Properties of every plan under every weather: random scenarios, fixed seeds.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "plan/link_model/jitter.hpp"
#include "plan/lowering/lower.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/order_of_time.hpp"
#include "support/weather.hpp"

namespace longhaul {
namespace {

using testing::same;
using testing::trace_of;

/// Stages or replicas over two or three datacenters, some links shared, interfaces now and then;
/// times in units of microseconds.
Scenario random_weather_scenario(Random& random) {
  const auto stages = static_cast<int>(random.between(2, 4));
  Scenario scenario = uniform_scenario(stages, stages * static_cast<int>(random.between(1, 3)),
                                       Duration{random.between(10, 300)});
  scenario.parallel.replicas = static_cast<int>(random.between(1, 2));
  scenario.parallel.gradient_sync = static_cast<GradientSync>(random.between(0, 3));
  const auto datacenters = static_cast<int>(random.between(2, 3));
  scenario.datacenters.clear();
  scenario.placement.clear();
  for (int from = 0; from < datacenters; ++from) {
    scenario.datacenters.push_back({fmt::format("dc{}", from), {}});
    if (random.between(0, 2) == 0)
      scenario.nodes.push_back({DatacenterId{from}, 1, Bandwidth{8e13}, Bandwidth{5e13}});
    for (int to = 0; to < datacenters; ++to) {
      const Bandwidth rate{1e14 / static_cast<double>(random.between(1, 9))};
      if (from != to)
        scenario.links.push_back({DatacenterId{from}, DatacenterId{to},
                                  Duration{random.between(0, 300)}, rate,
                                  static_cast<Sharing>(random.between(0, 1))});
    }
  }
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    scenario.placement.push_back(DatacenterId{rank % datacenters});
  return scenario;
}

/// Steps of the link around what it gives, outages, jitter and losses.
void add_weather(Link& link, Random& random) {
  std::vector<LinkState> states;
  Duration at{};
  for (int i = 0; i < 8; ++i) {
    states.push_back({at, Duration{random.between(0, 400)},
                      Bandwidth{1e14 / static_cast<double>(random.between(1, 20))}});
    at += Duration{random.between(1, 400)};
  }
  link.weather.trace = testing::trace_of(states);
  if (random.between(0, 1) == 0) link.weather.repeat = at;
  Duration begin{random.between(0, 300)};
  for (int i = 0; i < 3; ++i) {
    link.weather.outages.push_back({begin, Duration{random.between(1, 200)}});
    begin += link.weather.outages.back().length + Duration{random.between(0, 300)};
  }
  link.jitter.kind = static_cast<JitterKind>(random.between(0, 3));
  link.jitter.latency = link.jitter.transfer = 0.1 * static_cast<double>(random.between(0, 5));
  link.jitter.correlation = 0.5 * static_cast<double>(random.between(0, 2));
  link.weather.loss.probability = 0.1 * static_cast<double>(random.between(0, 3));
}

struct WeatherInstance {
  Scenario scenario;
  Plan plan;
};

WeatherInstance random_weather_instance(std::uint64_t seed, bool with_weather = true) {
  Random random{seed};
  WeatherInstance instance{random_weather_scenario(random), {}};
  if (with_weather)
    for (Link& link : instance.scenario.links) add_weather(link, random);
  const char* const names[] = {"gpipe", "1f1b", "zb-h1"};
  instance.plan = plan::lower(schedule::generate(names[random.between(0, 2)], instance.scenario),
                              instance.scenario);
  return instance;
}

TEST(WeatherProperties, CalmWeatherChangesNothing) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    WeatherInstance instance = random_weather_instance(seed, false);
    const OpTimes calm = sim::simulate(instance.plan);
    const plan::Weather none{instance.plan, instance.scenario};
    EXPECT_TRUE(none.calm());
    EXPECT_TRUE(testing::same(sim::simulate(instance.plan, {&none, 3, 1ms}), calm)) << seed;
    // A trace that says what the link gives, over and over.
    for (Link& link : instance.scenario.links) {
      link.weather.trace = testing::trace_of(
          {{0ns, link.latency, link.bandwidth}, {97ns, link.latency, link.bandwidth}});
      link.weather.repeat = 211ns;
    }
    const plan::Weather constant{instance.plan, instance.scenario};
    EXPECT_TRUE(testing::same(sim::simulate(instance.plan, {&constant, 3, 1ms}), calm)) << seed;
  }
}

TEST(WeatherProperties, JitterAloneIsWhatRobustPlansMeet) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    WeatherInstance instance = random_weather_instance(seed, false);
    for (Link& link : instance.scenario.links) link.jitter = {0.3, 0.2, 0.5};
    const plan::Weather weather{instance.plan, instance.scenario};
    plan::JitteredPlan jittered{instance.plan, instance.scenario};
    for (const std::uint64_t iteration : {4U, 1U})
      EXPECT_TRUE(testing::same(sim::simulate(instance.plan, {&weather, iteration, 5ms}),
                                sim::simulate(jittered.in(iteration))))
          << seed;
  }
}

TEST(WeatherProperties, WhoBeginsLaterNeverEndsEarlier) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const WeatherInstance instance = random_weather_instance(seed);
    const plan::Weather weather{instance.plan, instance.scenario};
    for (std::uint32_t i = 0; i < instance.plan.ops.size(); i += 7) {
      const Op& op = instance.plan.ops[i];
      if (op.kind != OpKind::send && op.kind != OpKind::collective) continue;
      Duration before{};
      for (Duration begin{-50}; begin < 3us; ++begin) {
        const Duration hold = op.kind == OpKind::send ? weather.hold(OpId{i}, seed, begin)
                                                      : weather.collective(OpId{i}, seed, begin);
        ASSERT_GE(hold, 0ns);
        ASSERT_TRUE(begin == Duration{-50} || begin + hold >= before)
            << "seed " << seed << ", " << to_text(instance.plan, OpId{i}) << " at "
            << begin.count();
        before = begin + hold;
      }
    }
  }
}

TEST(WeatherProperties, OutagesOnlyDelay) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    WeatherInstance instance = random_weather_instance(seed);
    Scenario fair = instance.scenario;
    for (Link& link : fair.links) link.weather.outages.clear();
    const plan::Weather foul{instance.plan, instance.scenario};
    const plan::Weather mild{instance.plan, fair};
    for (std::uint32_t i = 0; i < instance.plan.ops.size(); ++i) {
      if (instance.plan.ops[i].kind != OpKind::send) continue;
      for (const Duration begin : {0ns, 150ns, 333ns, 900ns}) {
        const Duration hold = foul.hold(OpId{i}, 0, begin);
        EXPECT_GE(hold, mild.hold(OpId{i}, 0, begin));
        EXPECT_GE(hold, foul.outage_left(OpId{i}, begin));
      }
    }
  }
}

TEST(WeatherProperties, FollowsFromSeedAndTimeAlone) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const WeatherInstance instance = random_weather_instance(seed);
    const plan::Weather weather{instance.plan, instance.scenario};
    const OpTimes first = sim::simulate(instance.plan, {&weather, 5, 1us});
    EXPECT_EQ(testing::difference_in_order_of_time(instance.plan, first, {&weather, 5, 1us}), "");
    // Another object, asked for other iterations first, backwards, twice.
    const plan::Weather other{instance.plan, instance.scenario};
    (void)sim::simulate(instance.plan, {&other, 9, 7us});
    for (auto i = static_cast<std::uint32_t>(instance.plan.ops.size()); i-- > 0;) {
      const Op& op = instance.plan.ops[i];
      if (op.kind == OpKind::send) (void)other.hold(OpId{i}, 5, 1us);
      if (op.kind == OpKind::recv) (void)other.latency(OpId{i}, 2, 3us);
    }
    EXPECT_TRUE(testing::same(sim::simulate(instance.plan, {&other, 5, 1us}), first)) << seed;
  }
}

}  // namespace
}  // namespace longhaul
