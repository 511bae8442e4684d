// Credit for lateness, and the clock without it: a run with credit knows when one without would
// end.
#include <algorithm>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "played_plan.hpp"
#include "random_plans.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

using namespace std::chrono_literals;
using testing::play;
using testing::PlayedByEngine;
using testing::VirtualRun;

/// Links of pairs alone: who is late waits, but takes no other's turn.
Scenario scenario_without_turns(Random& random) {
  Scenario scenario = testing::random_scenario(random);
  scenario.nodes.clear();
  for (Link& link : scenario.links) {
    link.sharing = Sharing::pair;
    link.aggregate = Link{}.aggregate;
  }
  return scenario;
}

/// Who is late on a link of several lanes may lose its turn to another, and both runs differ.
bool has_turns(const Plan& plan) {
  std::vector<LaneId> lane(plan.resources.size(), kNone<LaneId>);
  for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
    if (plan.ops[i].kind != OpKind::send) continue;
    for (const ResourceId resource : plan.resources_of(OpId{i})) {
      LaneId& user = lane[index(resource)];
      if (user != kNone<LaneId> && user != plan.ops[i].lane) return true;
      user = plan.ops[i].lane;
    }
  }
  return false;
}

/// Ops of up to some milliseconds: 2% of them are tens of microseconds.
Plan longer(Plan plan) {
  for (Op& op : plan.ops) op.duration *= 100'000;
  return plan;
}

template <typename Each>
int for_drawn_plans(std::uint64_t seeds, Each&& each) {
  const auto generators = schedule::generators();
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    Random random{seed};
    const Scenario scenario = scenario_without_turns(random);
    const auto& generator = generators[to_size(random.between(0, std::ssize(generators) - 1))];
    const auto schedule = schedule::try_generate(generator, scenario);
    if (!schedule) continue;
    for (const Arrangement arrangement : every<Arrangement>()) {
      const auto plan = plan::try_lower(*schedule, scenario, arrangement);
      if (!plan || has_turns(*plan) || !sim::try_simulate(*plan)) continue;
      SCOPED_TRACE(fmt::format("seed {}, {}, {}", seed, generator.name, to_string(arrangement)));
      each(longer(*plan));
      ++plans;
    }
  }
  return plans;
}

Duration last_seen(const PlayedByEngine& played) {
  return std::ranges::max(played.ends, {}, &engine::ShadowTime::seen).seen;
}

TEST(CreditByAVirtualClock, TheShadowIsTheClockOfARunWithoutIt) {
  int exact = 0, credited = 0, sooner = 0;
  const int plans = for_drawn_plans(120, [&](const Plan& plan) {
    const PlayedByEngine with = play(plan, {}, {.credit = 1ms, .latest = 200us}).front();
    const PlayedByEngine without = play(plan, {}, {.latest = 200us}).front();
    ASSERT_EQ(without.credited, 0);
    for (std::size_t rank = 0; rank < with.ends.size(); ++rank) {
      // A member of a collective that comes late hears late of those before it, and takes their
      // lag as of then: the shadow is never early, and may be late.
      EXPECT_GE(with.ends[rank].shadow, without.ends[rank].seen) << "rank " << rank;
      if (plan.collectives.empty()) {
        EXPECT_EQ(with.ends[rank].shadow, without.ends[rank].seen) << "rank " << rank;
      }
      EXPECT_EQ(without.ends[rank].lag(), Duration::zero()) << "rank " << rank;
    }
    exact += plan.collectives.empty() ? 1 : 0;
    credited += with.credited > 0 ? 1 : 0;
    sooner += last_seen(with) < last_seen(without) ? 1 : 0;
    EXPECT_LE(last_seen(with), last_seen(without));
  });
  EXPECT_GT(plans, 40);
  EXPECT_GT(exact, 10);
  EXPECT_GT(credited, plans / 2);
  EXPECT_GT(sooner, plans / 2);
}

TEST(CreditByAVirtualClock, MakesNoRunSoonerThanItsPrediction) {
  for_drawn_plans(20, [&](const Plan& plan) {
    const PlayedByEngine with = play(plan, {}, {.credit = 1ms, .latest = 200us}).front();
    const OpTimes simulated = sim::simulate(plan);
    EXPECT_GE(last_seen(with), std::ranges::max(simulated, {}, &OpTime::end).end);
  });
}

// Nothing is late: nothing is credited, and both clocks are one.
TEST(CreditByAVirtualClock, IsNotUsedWhereNothingIsLate) {
  for_drawn_plans(20, [&](const Plan& plan) {
    const PlayedByEngine played = play(plan, {}, {.credit = 1ms}).front();
    EXPECT_EQ(played.credited, 0);
    for (const engine::ShadowTime& end : played.ends) EXPECT_EQ(end.lag(), Duration::zero());
    EXPECT_EQ(testing::difference(plan, played.times, sim::simulate(plan)), "");
  });
}

}  // namespace
}  // namespace longhaul
