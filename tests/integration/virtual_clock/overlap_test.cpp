// Blocks that slow beside messages: the timed device against the simulator.
#include <algorithm>
#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/index.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/plan_draft.hpp"
#include "plan/rows.hpp"
#include "played_plan.hpp"
#include "random_plans.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"

namespace longhaul {
namespace {

using namespace std::chrono_literals;
using testing::difference;
using testing::play;
using testing::VirtualRun;

TEST(OverlapByTheClock, ABlockBesideAMessageEndsAsItShould) {
  plan::PlanDraft draft{"one message"};
  const Rank east = draft.add_rank("east");
  const Rank west = draft.add_rank("west");
  const LaneId here = draft.add_lane(east, "compute", OpKind::compute,
                                     {draft.add_resource("device 0", ResourceKind::device)});
  const LaneId there = draft.add_lane(west, "compute", OpKind::compute,
                                      {draft.add_resource("device 1", ResourceKind::device)});
  const LaneId sends = draft.add_lane(east, "send>1", OpKind::send,
                                      {draft.add_resource("link 0>1", ResourceKind::link)});
  const LaneId receives = draft.add_lane(west, "recv<0", OpKind::recv);
  const auto first = draft.add_block(here, 2ms);
  const auto second = draft.add_block(here, 8ms);
  const auto receiving = draft.add_block(there, 10ms);
  draft.after(draft.add_message(sends, receives, 4ms, 20ms).send, first);
  draft.overlap(plan::Overlap::of(1, 1, 2));
  const Plan plan = draft.make();
  const OpTimes played = play(plan).front().times;
  EXPECT_EQ(played[index(draft.id(second))].end, 12ms);
  EXPECT_EQ(played[index(draft.id(receiving))].end, 12ms);
  EXPECT_EQ(difference(plan, played, sim::simulate(plan)), "");
}

Scenario random_overlap(Random& random) {
  Scenario scenario = testing::random_scenario(random);
  constexpr std::array kSlowdowns{1.0, 1.001, 1.3, 1.5, 2.0, 3.7, 40.0};
  for (double* level :
       {&scenario.overlap.node, &scenario.overlap.datacenter, &scenario.overlap.wan})
    *level = kSlowdowns[to_size(random.between(0, std::ssize(kSlowdowns) - 1))];
  return scenario;
}

/// Plays plans of scenarios with slowdowns; `vary` changes a scenario, the rest is as it says.
template <typename Vary, typename Each>
void for_slowed_plans(std::uint64_t seeds, int at_least, Vary&& vary, Each&& each) {
  int plans = 0;
  int slowed = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = random_overlap(random);
    vary(scenario, random);
    const auto generators = schedule::generators();
    for (int i = 0; i < 3; ++i) {
      const auto& generator = generators[to_size(random.between(0, std::ssize(generators) - 1))];
      const auto schedule = schedule::try_generate(generator, scenario);
      if (!schedule) continue;
      const auto arrangement = static_cast<Arrangement>(random.between(0, 1));
      const auto plan = plan::try_lower(*schedule, scenario, arrangement);
      if (!plan || !sim::try_simulate(*plan)) continue;
      SCOPED_TRACE(fmt::format("{}, {}", generator.name, to_string(arrangement)));
      VirtualRun run;
      run.order_seed = seed % 2 == 0 ? seed : 0;
      each(*plan, scenario, run, seed);
      ++plans;
      Plan steady = *plan;
      steady.extras.overlap = {};
      const auto ends = [](const OpTimes& times) {
        Duration sum{};
        for (const OpTime& time : times) sum += time.end;
        return sum;
      };
      slowed += ends(sim::simulate(*plan)) > ends(sim::simulate(steady)) ? 1 : 0;
    }
  }
  EXPECT_GT(plans, at_least);
  EXPECT_GT(slowed, at_least / 2) << "most must be of plans in which something slows";
}

void leave(Scenario&, Random&) {}

TEST(OverlapByTheClock, RandomPlansTakeThePredictedTime) {
  for_slowed_plans(
      100, 150, leave, [](const Plan& plan, const Scenario&, const VirtualRun& run, std::uint64_t) {
        EXPECT_EQ(difference(plan, play(plan, {}, run).front().times, sim::simulate(plan)), "");
      });
}

TEST(OverlapByTheClock, TheyTakeItUnderWeatherAndOnSeveralHosts) {
  for_slowed_plans(
      60, 80, testing::add_weather,
      [](const Plan& plan, const Scenario& scenario, VirtualRun run, std::uint64_t seed) {
        const plan::Weather weather{plan, scenario};
        const plan::WeatherOfIteration at{&weather, seed % 5, Duration{300}};
        run.ranks_per_host = static_cast<int>(seed % 4);
        EXPECT_EQ(difference(plan, play(plan, at, run).front().times, sim::simulate(plan, at),
                             testing::Bounds::any),
                  "");
      });
}

TEST(OverlapByTheClock, TheyTakeItWithNoiseOfEachIteration) {
  for_slowed_plans(
      20, 20, leave, [](const Plan& plan, const Scenario&, VirtualRun run, std::uint64_t) {
        run.iterations = 2;
        run.blocks.noise = 0.3;
        const auto played = play(plan, {}, run);
        for (int iteration = 0; iteration < run.iterations; ++iteration) {
          Plan noisy = plan;
          for (std::uint32_t i = 0; i < plan.ops.size(); ++i) {
            if (plan.ops[i].kind != OpKind::compute) continue;
            const DeviceId device = plan.ranks[index(plan.rank_of(OpId{i}))].device;
            noisy.ops[i].duration =
                scaled(plan.ops[i].duration,
                       plan::block_time_factor(run.blocks, device, OpId{i}, iteration));
          }
          EXPECT_EQ(difference(plan, played[to_size(iteration)].times, sim::simulate(noisy)), "");
        }
      });
}

TEST(OverlapByTheClock, ADeviceThatCannotSlowIsRefused) {
  Scenario scenario = spread(uniform_scenario(2, 2), 2, 100ns, 100ns);
  scenario.overlap.wan = 2;
  const Plan plan = plan::lower(schedule::generate("1f1b", scenario), scenario);
  VirtualRun run;
  run.latest = 5ns;  // by a device of the test that knows only when blocks end
  try {
    (void)play(plan, {}, run);
    FAIL() << "was played";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("computation that slows beside messages"));
  }
}

}  // namespace
}  // namespace longhaul
