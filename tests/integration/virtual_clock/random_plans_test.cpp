// The same for seeded random scenarios, in which much happens in the same instants.
#include "random_plans.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/index.hpp"
#include "engine/links/lease_homes.hpp"
#include "plan/lowering/lower.hpp"
#include "plan/rows.hpp"
#include "played_plan.hpp"
#include "schedule/generators/generate.hpp"
#include "sim/simulate.hpp"
#include "support/cells.hpp"

namespace longhaul {
namespace {

using testing::add_rank_layout;
using testing::add_weather;
using testing::difference;
using testing::play;
using testing::random_scenario;
using testing::VirtualRun;

/// A few of the generators' schedules for a scenario, in both arrangements.
template <typename Each>
int for_drawn_plans(const Scenario& scenario, Random& random, int draws, Each&& each) {
  const auto generators = schedule::generators();
  int plans = 0;
  for (int i = 0; i < draws; ++i) {
    const auto& generator = generators[to_size(random.between(0, std::ssize(generators) - 1))];
    const auto schedule = schedule::try_generate(generator, scenario);
    if (!schedule) continue;
    for (const Arrangement arrangement : every<Arrangement>()) {
      const auto plan = plan::try_lower(*schedule, scenario, arrangement);
      if (!plan || !sim::try_simulate(*plan)) continue;
      SCOPED_TRACE(fmt::format("{}, {}", generator.name, to_string(arrangement)));
      each(*plan);
      ++plans;
    }
  }
  return plans;
}

/// In every other scenario ranks run in a drawn order.
VirtualRun run_of(std::uint64_t seed) {
  VirtualRun run;
  run.order_seed = seed % 2 == 0 ? seed : 0;
  return run;
}

TEST(RandomPlans, TakeThePredictedTime) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const Scenario scenario = random_scenario(random);
    plans += for_drawn_plans(scenario, random, 4, [&](const Plan& plan) {
      const OpTimes played = play(plan, {}, run_of(seed)).front().times;
      EXPECT_EQ(difference(plan, played, sim::simulate(plan)), "");
    });
  }
  EXPECT_GT(plans, 400);
}

TEST(RandomPlans, TakeItWithAnyLayoutOfRanks) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = random_scenario(random);
    add_rank_layout(scenario, random);
    plans += for_drawn_plans(scenario, random, 3, [&](const Plan& plan) {
      const OpTimes played = play(plan, {}, run_of(seed)).front().times;
      EXPECT_EQ(difference(plan, played, sim::simulate(plan)), "");
    });
  }
  EXPECT_GT(plans, 150);
}

TEST(RandomPlans, TakeItUnderWeather) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = random_scenario(random);
    add_weather(scenario, random);
    plans += for_drawn_plans(scenario, random, 3, [&](const Plan& plan) {
      const plan::Weather weather{plan, scenario};
      const plan::WeatherOfIteration at{&weather, seed % 5, Duration{random.between(0, 2000)}};
      const OpTimes played = play(plan, at, run_of(seed)).front().times;
      EXPECT_EQ(difference(plan, played, sim::simulate(plan, at)), "");
    });
  }
  EXPECT_GT(plans, 200);
}

TEST(RandomPlans, TakeItWithNoiseOfEachIteration) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const Scenario scenario = random_scenario(random);
    VirtualRun run = run_of(seed);
    run.iterations = 2;
    run.blocks.noise = 0.3;
    for_drawn_plans(scenario, random, 2, [&](const Plan& plan) {
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
}

/// States an order on the resources that several lanes hold: that in which the simulator serves,
/// with some neighbours exchanged.
void state_orders(Plan& plan, Random& random) {
  const OpTimes times = sim::simulate(plan);
  for (std::size_t r = 0; r < plan.resources.size(); ++r) {
    Resource& resource = plan.resources[r];
    if (resource.kind == ResourceKind::device || resource.lanes < 2 || random.between(0, 2) == 0)
      continue;
    std::vector<OpId> users;
    for (std::uint32_t i = 0; i < plan.ops.size(); ++i)
      if (plan.ops[i].kind == OpKind::send && keeps_order(plan.ops[i]) &&
          std::ranges::find(plan.resources_of(OpId{i}),
                            ResourceId{static_cast<std::uint32_t>(r)}) !=
              plan.resources_of(OpId{i}).end())
        users.push_back(OpId{i});
    std::ranges::stable_sort(users, {}, [&](OpId id) { return times[index(id)].start; });
    for (int swaps = 0; swaps < 4 && users.size() > 1; ++swaps) {
      resource.order = users;
      const auto at = random.between(0, std::ssize(users) - 2);
      std::swap(users[to_size(at)], users[to_size(at + 1)]);
      std::swap(resource.order, users);
      if (!sim::try_simulate(plan)) std::swap(resource.order, users);
      users = resource.order;
    }
    resource.order = users;
    if (!sim::try_simulate(plan)) resource.order.clear();
  }
}

TEST(RandomPlans, TakeItWithStatedOrders) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const Scenario scenario = random_scenario(random);
    for_drawn_plans(scenario, random, 3, [&](const Plan& without) {
      Plan plan = without;
      state_orders(plan, random);
      const auto has_order = [](const Resource& resource) { return !resource.order.empty(); };
      if (std::ranges::none_of(plan.resources, has_order)) return;
      ++plans;
      VirtualRun run = run_of(seed);
      run.iterations = 2;
      const auto played = play(plan, {}, run);
      for (const auto& iteration : played)
        EXPECT_EQ(difference(plan, iteration.times, sim::simulate(plan)), "");
    });
  }
  EXPECT_GT(plans, 100);
}

// The transport delivers each word and message a hop late, as the simulator is told.
TEST(RandomPlans, TakeItWithACostAHop) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = random_scenario(random);
    if (random.between(0, 1) == 0) add_weather(scenario, random);
    VirtualRun run = run_of(seed);
    run.hop = Duration{random.between(1, 3) * random.between(1, 15)};
    plans += for_drawn_plans(scenario, random, 3, [&](const Plan& plan) {
      const plan::Weather weather{plan, scenario};
      const auto played = play(plan, {&weather, 1, {}}, run).front();
      const OpTimes want = sim::simulate(plan, {&weather, 1, played.begin}, run.hop);
      EXPECT_EQ(difference(plan, played.times, want, testing::Bounds::any), "");
    });
  }
  EXPECT_GT(plans, 200);
}

/// Some ranks' sends hold a link or an interface that ranks of another host hold too.
bool leases_between_hosts(const Plan& plan, int ranks_per_host) {
  std::vector<Rank> hosts;
  for (std::size_t rank = 0; rank < plan.ranks.size(); ++rank)
    hosts.push_back(Rank{static_cast<int>(rank) / ranks_per_host * ranks_per_host});
  const std::vector<Rank> homes = engine::find_lease_homes(plan, hosts).home;
  return std::ranges::any_of(homes, [](Rank home) { return home != kNone<Rank>; });
}

// Links that hosts share are leased by messages, which by this clock take no time: it is the same.
TEST(RandomPlans, TakeItOnSeveralHosts) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = random_scenario(random);
    for (Link& link : scenario.links)
      if (random.between(0, 1) == 0) link.sharing = Sharing::datacenter;
    for_drawn_plans(scenario, random, 3, [&](const Plan& drawn) {
      Plan plan = drawn;
      if (random.between(0, 2) == 0) state_orders(plan, random);
      VirtualRun run = run_of(seed);
      run.ranks_per_host = static_cast<int>(random.between(1, 3));
      run.iterations = 2;
      if (!leases_between_hosts(plan, run.ranks_per_host)) return;
      ++plans;
      for (const auto& iteration : play(plan, {}, run))
        EXPECT_EQ(difference(plan, iteration.times, sim::simulate(plan)), "");
    });
  }
  EXPECT_GT(plans, 100);
}

TEST(RandomPlans, TakeItInCells) {
  int plans = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    Scenario scenario = random_scenario(random);
    scenario.parallel.replicas = static_cast<int>(random.between(2, 3));
    scenario.parallel.cell = 2;
    if (scenario.datacenters.size() < 2) continue;
    scenario.placement.clear();
    for (int rank = 0; rank < scenario.ranks(); ++rank)
      scenario.placement.push_back(DatacenterId{rank % scenario.parallel.stages *
                                                static_cast<int>(scenario.datacenters.size()) /
                                                scenario.parallel.stages});
    for (const char* name : {"1f1b", "zbv", "atlas"}) {
      auto schedule = schedule::try_generate(*schedule::find_generator(name), scenario);
      if (!schedule) continue;
      if (schedule->cell == 1 && schedule->replicas_share_rows())
        schedule = testing::in_cells(*schedule, scenario, 2);
      const auto plan = plan::try_lower(*schedule, scenario);
      if (!plan || plan->cell == 1 || !sim::try_simulate(*plan)) continue;
      SCOPED_TRACE(name);
      ++plans;
      const OpTimes played = play(*plan, {}, run_of(seed)).front().times;
      EXPECT_EQ(difference(*plan, played, sim::simulate(*plan)), "");
    }
  }
  EXPECT_GT(plans, 100);
}

}  // namespace
}  // namespace longhaul
