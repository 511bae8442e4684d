// Every plan of every generator takes on the engine, by a virtual clock and over a transport that
// takes no time, what the simulator says: each op to the nanosecond.
#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "plan/rewrite/expand.hpp"
#include "plan/rewrite/with_operators.hpp"
#include "plan/rows.hpp"
#include "played_plan.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/cells.hpp"
#include "support/operators.hpp"
#include "support/plans.hpp"
#include "support/weather.hpp"

namespace longhaul {
namespace {

using testing::difference;
using testing::play;
using testing::VirtualRun;

/// Stages in two datacenters; blocks of 100 ns, messages that hold a link for 30 ns and arrive 70
/// ns later.
Scenario two_sites(int replicas) {
  Scenario scenario = uniform_scenario(4, 8);
  scenario.parallel.replicas = replicas;
  scenario.parallel.gradient_sync = GradientSync::none;
  return spread(scenario, 2, Duration{70}, Duration{30});
}

void share_links(Scenario& scenario) {
  for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
}

void add_nodes(Scenario& scenario, int gpus) {
  const Bandwidth rate = scenario.links.front().bandwidth;
  for (const int datacenter : {0, 1})
    scenario.nodes.push_back(
        {DatacenterId{datacenter}, gpus, rate, rate, Bandwidth{4 * rate.bits_per_second()}});
}

/// Plays what every generator makes of a scenario, arranged so, and says how many plans that are.
class EveryGenerator : public ::testing::TestWithParam<Arrangement> {
protected:
  template <typename Each>
  int for_each_plan(const Scenario& scenario, Each&& each) {
    return for_each_schedule(scenario, [&](const Schedule&, const Plan& plan) { each(plan); });
  }
  template <typename Each>
  int for_each_schedule(const Scenario& scenario, Each&& each) {
    int plans = 0;
    for (const schedule::Generator& generator : schedule::generators()) {
      const auto schedule = schedule::try_generate(generator, scenario);
      if (!schedule) continue;
      const auto plan = plan::try_lower(*schedule, scenario, GetParam());
      if (!plan) continue;
      SCOPED_TRACE(generator.name);
      each(*schedule, *plan);
      ++plans;
    }
    return plans;
  }
  int expect_equal(const Scenario& scenario) {
    return for_each_plan(scenario, [](const Plan& plan) {
      EXPECT_EQ(difference(plan, play(plan).front().times, sim::simulate(plan)), "");
    });
  }
};

INSTANTIATE_TEST_SUITE_P(VirtualClock, EveryGenerator,
                         ::testing::Values(Arrangement::decoupled, Arrangement::grouped),
                         [](const auto& each) { return std::string{to_string(each.param)}; });

int all_generators() { return static_cast<int>(schedule::generators().size()); }

TEST_P(EveryGenerator, TakesThePredictedTimeBetweenTwoSites) {
  EXPECT_EQ(expect_equal(two_sites(1)), all_generators());
}

TEST_P(EveryGenerator, TakesItOnLinksWithoutAnyTime) {
  Scenario scenario = spread(uniform_scenario(4, 8), 2, Duration{0}, Duration{0});
  EXPECT_EQ(expect_equal(scenario), all_generators());
}

TEST_P(EveryGenerator, TakesItOnASharedLink) {
  Scenario scenario = two_sites(3);
  share_links(scenario);
  EXPECT_EQ(expect_equal(scenario), all_generators());
}

TEST_P(EveryGenerator, TakesItOnALinkThatTwoMessagesShare) {
  Scenario scenario = two_sites(3);
  for (Link& link : scenario.links)
    link.aggregate = Bandwidth{2 * link.bandwidth.bits_per_second()};
  EXPECT_EQ(expect_equal(scenario), all_generators());
}

TEST_P(EveryGenerator, TakesItBetweenNodesWithInterfaces) {
  Scenario scenario = two_sites(2);
  add_nodes(scenario, 2);
  EXPECT_EQ(expect_equal(scenario), all_generators());
  share_links(scenario);
  scenario.nodes.front().gpus = 1;
  EXPECT_EQ(expect_equal(scenario), all_generators());
}

TEST_P(EveryGenerator, TakesItWithTheCollectivesOfReplicas) {
  Scenario scenario = two_sites(2);
  for (const GradientSync sync : every<GradientSync>()) {
    if (sync == GradientSync::compressed) continue;  // not of all: stella_test.cpp
    scenario.parallel.gradient_sync = sync;
    EXPECT_EQ(expect_equal(scenario), all_generators()) << to_string(sync);
  }
}

TEST_P(EveryGenerator, TakesItWithOperatorsBelowItsBlocks) {
  Scenario scenario = two_sites(2);
  scenario.parallel.gradient_sync = GradientSync::zero1;
  scenario.costs.optimizer.assign(4, Duration{50});
  testing::cut_by(testing::operators_of({10, 20, 30, 40, 50, 60, 70, 80, 90}), scenario);
  const int plans = for_each_schedule(scenario, [&](const Schedule& schedule, const Plan& plan) {
    const Plan shared = plan::with_operators(plan, schedule, scenario).or_throw();
    for (const Plan& each : {shared, plan::expand(shared)})
      EXPECT_EQ(difference(each, play(each).front().times, sim::simulate(each)), "");
  });
  EXPECT_EQ(plans, all_generators());
}

TEST_P(EveryGenerator, TakesItWithSlowDevices) {
  const Scenario scenario = two_sites(1);
  VirtualRun run;
  run.blocks.stragglers = {1.0, 1.37, 1.0, 2.5};
  EXPECT_EQ(for_each_plan(scenario,
                          [&](const Plan& plan) {
                            const Plan slow = plan::with_stragglers(plan, run.blocks);
                            EXPECT_EQ(difference(plan, play(plan, {}, run).front().times,
                                                 sim::simulate(slow)),
                                      "");
                          }),
            all_generators());
}

TEST_P(EveryGenerator, TakesItUnderWeatherIterationAfterIteration) {
  Scenario scenario = two_sites(1);
  Link& link = scenario.links.front();
  const double rate = link.bandwidth.bits_per_second();
  link.weather.trace = testing::trace_of({{0ns, 70ns, Bandwidth{rate}},
                                          {500ns, 20ns, Bandwidth{rate / 3}},
                                          {1200ns, 150ns, Bandwidth{rate * 2}}});
  link.weather.repeat = 1700ns;
  link.weather.outages = {{900ns, 400ns}, {5000ns, 1000ns}};
  link.weather.loss.probability = 0.2;
  scenario.links.back().jitter = {0.3, 0.2, 0.5};
  VirtualRun run;
  run.iterations = 3;
  const int plans = for_each_plan(scenario, [&](const Plan& plan) {
    const plan::Weather weather{plan, scenario};
    const auto predicted = sim::play_iterations(plan, weather, run.iterations);
    const auto played = play(plan, {&weather, 0, {}}, run);
    for (std::uint64_t i = 0; i < played.size(); ++i) {
      EXPECT_EQ(played[i].begin, predicted[i].begin) << "iteration " << i;
      const OpTimes want = sim::simulate(plan, {&weather, i, predicted[i].begin});
      EXPECT_EQ(difference(plan, played[i].times, want), "") << "iteration " << i;
    }
  });
  EXPECT_EQ(plans, all_generators());
}

// Blocks of 100 and, backward, 200 ns; a message holds its link for 30 ns and arrives 70 ns later.
TEST(PlayedPlan, TakesTheTimesOfOneWorkedByHand) {
  const Scenario scenario = spread(uniform_scenario(2, 1), 2, Duration{70}, Duration{30});
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  for (const Duration hop : {0ns, 5ns}) {
    VirtualRun run;
    run.hop = hop;
    const OpTimes times = play(plan, {}, run).front().times;
    const auto spans = [&](int rank, OpKind kind, BlockKind block, Duration from, Duration to) {
      const OpTime& time = times[index(testing::find(plan, rank, kind, block, 0))];
      EXPECT_EQ(time.start, from) << "rank " << rank;
      EXPECT_EQ(time.end, to) << "rank " << rank;
    };
    spans(0, OpKind::compute, BlockKind::F, 0ns, 100ns);
    spans(0, OpKind::send, BlockKind::F, 100ns, 130ns);
    spans(1, OpKind::recv, BlockKind::F, 100ns + hop, 200ns + hop);
    spans(1, OpKind::compute, BlockKind::F, 200ns + hop, 300ns + hop);
    spans(1, OpKind::compute, BlockKind::B, 300ns + hop, 500ns + hop);
    spans(0, OpKind::recv, BlockKind::B, 500ns + 2 * hop, 600ns + 2 * hop);
    spans(0, OpKind::compute, BlockKind::B, 600ns + 2 * hop, 800ns + 2 * hop);
  }
}

// A real transfer counts against the nominal one, from when the header was seen: 30 ns hide what
// payloads take up to that, and what is beyond is in the time.
TEST(PlayedPlan, HidesPayloadsInTheirTransfers) {
  const Scenario scenario = spread(uniform_scenario(2, 1), 2, Duration{70}, Duration{30});
  const Plan plan = plan::lower(schedule::generate("gpipe", scenario), scenario);
  for (const Duration payload : {1ns, 29ns, 30ns, 31ns, 100ns}) {
    SCOPED_TRACE(payload.count());
    VirtualRun run;
    run.payload = payload;
    const OpTimes times = play(plan, {}, run).front().times;
    const Duration shown = std::max(0ns, payload - 30ns);
    const auto time_of = [&](int rank, OpKind kind, BlockKind block) {
      return times[index(testing::find(plan, rank, kind, block, 0))];
    };
    EXPECT_EQ(time_of(0, OpKind::send, BlockKind::F).end, 130ns) << "the link is free again";
    EXPECT_EQ(time_of(1, OpKind::recv, BlockKind::F).start, 100ns) << "the header was seen";
    EXPECT_EQ(time_of(1, OpKind::recv, BlockKind::F).end, 200ns + shown);
    EXPECT_EQ(time_of(0, OpKind::recv, BlockKind::B).end, 600ns + 2 * shown);
    EXPECT_EQ(time_of(0, OpKind::compute, BlockKind::B).end, 800ns + 2 * shown);
  }
}

// Relays: pieces are scattered, cross and are gathered.
TEST(EveryGeneratorInCells, TakesThePredictedTime) {
  Scenario scenario = two_sites(4);
  scenario.parallel.cell = 2;
  add_nodes(scenario, 1);
  int relayed = 0;
  for (const schedule::Generator& generator : schedule::generators()) {
    auto schedule = schedule::try_generate(generator, scenario);
    if (!schedule) continue;
    SCOPED_TRACE(generator.name);
    if (schedule->cell == 1 && schedule->replicas_share_rows())
      schedule = testing::in_cells(*schedule, scenario, 2);
    const Plan plan = plan::lower(*schedule, scenario);
    relayed += plan.cell > 1 ? 1 : 0;
    EXPECT_EQ(difference(plan, play(plan).front().times, sim::simulate(plan)), "");
  }
  EXPECT_EQ(relayed, all_generators());
}

}  // namespace
}  // namespace longhaul
