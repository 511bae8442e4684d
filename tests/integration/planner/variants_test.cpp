// The variants of CrossPipe's setting under `best`: extra memory and more microbatches (7.2 case
// 3), recomputation (case 2), stages and sites that differ (8.1), several datacenters, links that
// differ by direction, data parallelism.
#include <algorithm>
#include <ostream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/search/best.hpp"
#include "planner/search/makespan.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/random_scenario.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul {
namespace {

planner::SearchOptions few_moves() {
  planner::SearchOptions search;
  search.moves = 300;
  search.threads = 1;
  return search;
}

/// CrossPipe's M70 (F 38, B 67, D = W = 35 ms) over so many datacenters, ratios of T_F; times in
/// us.
Scenario m70(int stages, int microbatches, int datacenters, double latency, double transfer) {
  constexpr Duration kForward{38'000};
  Scenario scenario = uniform_scenario(stages, microbatches, kForward);
  const auto devices = static_cast<std::size_t>(stages);
  scenario.costs.backward.assign(devices, Duration{67'000});
  scenario.costs.dgrad.assign(devices, Duration{35'000});
  scenario.costs.wgrad.assign(devices, Duration{35'000});
  return spread(scenario, datacenters, scaled(kForward, latency), scaled(kForward, transfer));
}

struct Variant {
  const char* name;
  Scenario scenario;
};

void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }

Scenario with_budget(Scenario scenario, double budget) {
  scenario.memory.budget = budget;
  return scenario;
}

Scenario with_recomputation(Scenario scenario) {
  scenario.memory.recompute = true;
  return scenario;
}

/// The first half of the stages is `speed` times as fast.
Scenario with_fast_half(Scenario scenario, double speed) {
  for (auto* times : {&scenario.costs.forward, &scenario.costs.backward, &scenario.costs.dgrad,
                      &scenario.costs.wgrad, &scenario.costs.recompute}) {
    for (std::size_t i = 0; i < times->size() / 2; ++i)
      (*times)[i] = scaled((*times)[i], 1 / speed);
  }
  return scenario;
}

/// A first and a last stage that hold more than the others, as embedding and head do.
Scenario with_heavy_ends(Scenario scenario) {
  for (const std::size_t end : {std::size_t{0}, scenario.costs.forward.size() - 1}) {
    for (auto* times : {&scenario.costs.forward, &scenario.costs.backward, &scenario.costs.dgrad,
                        &scenario.costs.wgrad})
      (*times)[end] = scaled((*times)[end], 1.3);
    scenario.costs.activation[end] = Bytes{scenario.costs.activation[end].count() * 5 / 4};
  }
  return scenario;
}

/// NetworkRoutes back are four times as long and half as fast.
Scenario with_slow_ways_back(Scenario scenario) {
  for (Link& link : scenario.links) {
    if (link.from < link.to) continue;
    link.latency *= 4;
    link.bandwidth = Bandwidth{link.bandwidth.bits_per_second() / 2};
  }
  return scenario;
}

Scenario with_shared_links(Scenario scenario) {
  for (Link& link : scenario.links) link.sharing = Sharing::datacenter;
  return scenario;
}

Scenario with_replicas(Scenario scenario, GradientSync sync) {
  scenario.parallel.replicas = 2;
  scenario.parallel.gradient_sync = sync;
  const std::vector<DatacenterId> of_one = scenario.placement;
  scenario.placement.insert(scenario.placement.end(), of_one.begin(), of_one.end());
  return scenario;
}

class Variants : public ::testing::TestWithParam<Variant> {};

/// How many static schedules fit; `best` is valid, within the budget and no worse than any of them.
int fitting_statics(const Scenario& scenario, const planner::SearchResult& found) {
  EXPECT_EQ(schedule::first_violation(found.schedule, scenario), std::nullopt);
  EXPECT_TRUE(schedule::over_budget(found.schedule, scenario).empty());
  EXPECT_EQ(planner::makespan_of(found.schedule, scenario), found.makespan);
  EXPECT_GE(found.makespan, found.bound.lower_bound);
  int fitting = 0;
  for (const std::string_view name : schedule::static_schedule_names()) {
    Schedule schedule;
    try {
      schedule = schedule::generate(name, scenario);
    } catch (const Error&) {
      continue;  // interleaved 1F1B needs P to divide M
    }
    if (!schedule::over_budget(schedule, scenario).empty()) continue;
    ++fitting;
    EXPECT_LE(found.makespan, planner::makespan_of(schedule, scenario)) << name;
  }
  return fitting;
}

TEST_P(Variants, AreServedWithinTheBudgetAndNoWorseThanAnyStatic) {
  const Scenario& scenario = GetParam().scenario;
  EXPECT_GT(fitting_statics(scenario, planner::find_best(scenario, few_moves())), 0);
}

TEST(RandomScenarios, AreServedWithinTheBudgetAndNoWorseThanAnyStatic) {
  int fitting = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    const Scenario scenario = test::random_scenario(seed);
    try {
      fitting += fitting_statics(scenario, planner::find_best(scenario, few_moves()));
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("No schedule fits memory.budget"));
    }
  }
  EXPECT_GT(fitting, 100);
}

INSTANTIATE_TEST_SUITE_P(
    Memory, Variants,
    ::testing::Values(Variant{"budget 1.25", with_budget(m70(4, 8, 2, 2, 0.25), 1.25)},
                      Variant{"budget 2", with_budget(m70(4, 8, 2, 2, 0.25), 2)},
                      Variant{"budget 2, four datacenters", with_budget(m70(4, 8, 4, 2, 2), 2)},
                      Variant{"more microbatches", m70(4, 24, 2, 2, 0.25)},
                      Variant{"fewer microbatches than stages", m70(6, 4, 2, 2, 0.25)},
                      Variant{"recomputation", with_recomputation(m70(4, 8, 2, 1, 1))},
                      Variant{"recomputation, four datacenters",
                              with_recomputation(m70(4, 12, 4, 2, 0.25))}));

INSTANTIATE_TEST_SUITE_P(
    Sites, Variants,
    ::testing::Values(Variant{"one datacenter", m70(4, 8, 1, 0, 0)},
                      Variant{"three datacenters", m70(6, 12, 3, 1, 1)},
                      Variant{"four datacenters", m70(8, 8, 4, 2, 0.25)},
                      Variant{"six datacenters", m70(6, 12, 6, 0.25, 2)},
                      Variant{"a fast half", with_fast_half(m70(4, 8, 2, 1, 0.25), 1.5)},
                      Variant{"heavy ends", with_heavy_ends(m70(4, 8, 2, 1, 0.25))},
                      Variant{"heavy ends and a fast half",
                              with_fast_half(with_heavy_ends(m70(6, 12, 3, 0.25, 2)), 2)}));

INSTANTIATE_TEST_SUITE_P(
    Links, Variants,
    ::testing::Values(
        Variant{"slow ways back", with_slow_ways_back(m70(4, 8, 2, 0.5, 0.5))},
        Variant{"slow ways back, four datacenters", with_slow_ways_back(m70(4, 8, 4, 0.5, 0.5))},
        Variant{"shared links", with_shared_links(m70(4, 8, 2, 0.5, 1))},
        Variant{"replicas", with_replicas(m70(4, 8, 2, 1, 0.25), GradientSync::all_reduce)},
        Variant{"replicas with ZeRO-1 and shared links",
                with_shared_links(with_replicas(m70(4, 6, 2, 1, 0.25), GradientSync::zero1))}));

// A bound that is proven cannot fall when the problem gets harder: what was impossible stays so.
// Makespans that are found may.
TEST(VariantBounds, FollowTheProblem) {
  const auto bound = [](const Scenario& scenario) {
    return planner::find_best(scenario, few_moves()).bound.lower_bound;
  };
  const Scenario base = m70(4, 8, 2, 1, 0.5);
  const Duration of_base = bound(base);
  EXPECT_GT(of_base, Duration::zero());
  EXPECT_LE(bound(with_budget(base, 2)), of_base);
  EXPECT_GE(bound(m70(4, 9, 2, 1, 0.5)), of_base);
  EXPECT_GE(bound(m70(4, 8, 2, 2, 0.5)), of_base);
  EXPECT_GE(bound(m70(4, 8, 2, 1, 2)), of_base);
  EXPECT_GE(bound(with_slow_ways_back(base)), of_base);
  EXPECT_LE(bound(with_fast_half(base, 1.5)), of_base);
  Scenario slower = base;  // the same bytes: only the times grow
  slower.costs.forward[0] *= 2;
  slower.costs.wgrad[3] *= 2;
  EXPECT_GE(bound(slower), of_base);
}

}  // namespace
}  // namespace longhaul
