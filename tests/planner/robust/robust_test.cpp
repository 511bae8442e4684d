#include "planner/robust/robust.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/link_model/jitter.hpp"
#include "planner/search/makespan.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

Scenario with_jitter(Scenario scenario, Jitter jitter) {
  for (Link& link : scenario.links) link.jitter = jitter;
  return scenario;
}

Scenario two_datacenters(Jitter jitter) {
  return with_jitter(spread(uniform_scenario(4, 8), 2, Duration{100}, Duration{30}), jitter);
}

RobustOptions quick() {
  RobustOptions options;
  options.search.moves = 200;
  options.search.threads = 1;
  options.samples = 16;
  return options;
}

TEST(QuantileOf, IsTheNearestRank) {
  const std::vector<Duration> times{5ns, 1ns, 4ns, 2ns, 3ns};
  EXPECT_EQ(quantile_of(times, 0.5), 3ns);
  EXPECT_EQ(quantile_of(times, 0.6), 3ns);
  EXPECT_EQ(quantile_of(times, 0.61), 4ns);
  EXPECT_EQ(quantile_of(times, 0.95), 5ns);
  EXPECT_EQ(quantile_of(times, 1), 5ns);
  EXPECT_EQ(quantile_of({7ns}, 0.01), 7ns);
}

TEST(UnderJitter, WithoutAnyIsTheMakespan) {
  const Scenario scenario = two_datacenters({});
  const Schedule schedule = schedule::generate("zb-h1", scenario);
  const Duration makespan = makespan_of(schedule, scenario);
  EXPECT_THAT(makespans_under_jitter(schedule, scenario, Arrangement::decoupled, 5),
              Each(makespan));
}

TEST(UnderJitter, OfAWholeLinkIsTheMakespanAtItsLatency) {
  // GPipe waits for the link once there and once back, so each way adds what it is longer by.
  Scenario scenario = two_datacenters({0.5, 0, 1});
  const Schedule gpipe = schedule::generate("gpipe", scenario);
  const auto found = makespans_under_jitter(gpipe, scenario, Arrangement::decoupled, 8);
  for (int sample = 0; sample < 8; ++sample) {
    Scenario played = scenario;
    for (Link& link : played.links) {
      const plan::LinkJitter jitter{link, scenario.run.seed};
      const Rank west{1};
      const Rank east{2};
      const bool there = link.from == DatacenterId{0};
      const Block any{there ? BlockKind::F : BlockKind::B, 0, 1, ChunkId{1}, MicrobatchId{0}};
      link.latency = scaled(link.latency, jitter
                                              .of(static_cast<std::uint64_t>(sample),
                                                  there ? west : east, there ? east : west, any)
                                              .latency);
    }
    EXPECT_EQ(found[static_cast<std::size_t>(sample)], makespan_of(gpipe, played)) << sample;
  }
}

TEST(Conservative, MakesLinksAndInterfacesSlower) {
  Scenario scenario = two_datacenters({});
  scenario.nodes.push_back({DatacenterId{0}, 1, 5_Gbps, Bandwidth::unlimited()});
  const Scenario slow = conservative(scenario, 1.25);
  for (std::size_t i = 0; i < slow.links.size(); ++i) {
    EXPECT_EQ(slow.links[i].latency, 125ns);
    EXPECT_EQ(1_MiB / slow.links[i].bandwidth, Duration{38});  // 37.5
  }
  EXPECT_EQ(slow.nodes[0].egress, 4_Gbps);
  EXPECT_TRUE(slow.nodes[0].ingress.is_unlimited());
  EXPECT_EQ(slow.costs.forward, scenario.costs.forward);
}

TEST(PickRobust, HasTheLeastTailOfAllThatFit) {
  for (const double spread : {0.1, 0.5}) {
    const Scenario scenario = two_datacenters({spread, spread, 0.5});
    const RobustOptions options = quick();
    const RobustChoice choice = pick_robust(scenario, options).or_throw();
    EXPECT_EQ(choice.schedule.name, "best");
    EXPECT_EQ(schedule::first_violation(choice.schedule, scenario), std::nullopt);
    EXPECT_TRUE(schedule::over_budget(choice.schedule, scenario).empty());
    const Duration tail = under_jitter(choice.schedule, scenario, options).tail;
    EXPECT_EQ(tail, choice.candidates.front().times.tail);
    EXPECT_LE(tail, under_jitter(choice.as_profiled.schedule, scenario, options).tail);
    for (const Candidate& candidate : choice.as_profiled.candidates.fitting)
      EXPECT_LE(tail, under_jitter(candidate.schedule, scenario, options).tail)
          << candidate.schedule.name;
    const double factors[]{1.1, 1.25, 1.5};
    for (const double factor : factors) {
      const SearchResult remedy = find_best(conservative(scenario, factor), options.search);
      EXPECT_LE(tail, under_jitter(remedy.schedule, scenario, options).tail) << factor;
    }
  }
}

TEST(PickRobust, IsTheSameEachTimeAndFollowsTheSeed) {
  Scenario scenario = two_datacenters({0.5, 0.5, 0});
  const RobustChoice once = pick_robust(scenario, quick()).or_throw();
  const RobustChoice again = pick_robust(scenario, quick()).or_throw();
  ASSERT_EQ(once.candidates.size(), again.candidates.size());
  for (std::size_t i = 0; i < once.candidates.size(); ++i) {
    EXPECT_EQ(once.candidates[i].schedule, again.candidates[i].schedule);
    EXPECT_EQ(once.candidates[i].times.tail, again.candidates[i].times.tail);
  }
  scenario.run.seed = 2;
  EXPECT_NE(pick_robust(scenario, quick())->candidates.front().times.tail,
            once.candidates.front().times.tail);
}

TEST(PickRobust, NeedsJitterAndASchedule) {
  const auto said = [](const Scenario& scenario) -> std::string {
    try {
      (void)pick_robust(scenario, quick()).or_throw();
    } catch (const Error& error) {
      return error.what();
    }
    return "picked";
  };
  EXPECT_THAT(said(two_datacenters({})), HasSubstr("no link of uniform has jitter"));
  Scenario tight = two_datacenters({0.1, 0, 0});
  tight.memory.budget = 0.01;
  EXPECT_THAT(said(tight), HasSubstr("memory.budget"));
}

}  // namespace
}  // namespace longhaul::planner
