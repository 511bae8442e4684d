#include "planner/layouts/order_time.hpp"

#include <map>

#include <gtest/gtest.h>

#include "collective/overlap/overlaps.hpp"
#include "plan/lowering/lower.hpp"
#include "planner/layouts/layout_search.hpp"
#include "planner/layouts/problems.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "planner/predict/predict.hpp"
#include "planner/search/makespan.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/csv/csv.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/memory.hpp"
#include "schedule/validity/validity.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

using test::random_layout;

Scenario emitted(const LayoutProblem& problem, const LayoutPlan& plan) {
  return scenario::parse_scenario(scenario_text(problem, plan, "plan-0"), "plan-0.toml");
}

Duration simulated(const LayoutProblem& problem, const LayoutPlan& plan) {
  const Scenario scenario = emitted(problem, plan);
  const Schedule schedule = schedule::generate(to_string(plan.layout.order), scenario);
  Duration end{};
  for (const OpTime& time : sim::simulate(plan::lower(schedule, scenario)))
    end = std::max(end, time.end);
  return end;
}

LayoutPlan timed(const LayoutProblem& problem, const Layout& layout) {
  LayoutTimer timer{problem};
  OrderTimer orders;
  EXPECT_NE(timer.graph(layout), nullptr);
  const LayoutTimes times = timer.times(layout);
  LayoutPlan plan;
  plan.layout = layout;
  plan.iteration = orders.makespan(layout, times);
  plan.bound = least_makespan(layout, times);
  return plan;
}

TEST(OrderTimer, GivesTheMakespanOfTheEmittedScenario) {
  Random random{18};
  for (const LayoutProblem& problem : {test::layout_problem(), test::two_sites()}) {
    for (int i = 0; i < 60; ++i) {
      const Layout layout = random_layout(random, problem);
      const LayoutPlan plan = timed(problem, layout);
      ASSERT_EQ(plan.iteration, simulated(problem, plan))
          << scenario_text(problem, plan, "differs");
    }
  }
}

TEST(RepresentativeText, HasTheMakespanOfTheWhole) {
  Random random{19};
  int of_sites = 0;
  for (const LayoutProblem& problem : {test::layout_problem(), test::two_sites()}) {
    for (int i = 0; i < 60; ++i) {
      Layout layout = random_layout(random, problem);
      if (layout.order == LayoutOrder::interleaved) layout.chunks = 2;
      if (!why_no_layout(problem, layout).empty()) continue;
      const LayoutPlan plan = timed(problem, layout);
      const std::string text = representative_text(problem, plan, "part");
      const Scenario part = scenario::parse_scenario(text, "part.toml");
      const Schedule schedule = schedule::generate(to_string(layout.order), part);
      Duration end{};
      for (const OpTime& time : sim::simulate(plan::lower(schedule, part)))
        end = std::max(end, time.end);
      const bool sends_gradients =
          part.parallel.replicas > 1 && part.parallel.gradient_sync != GradientSync::none;
      of_sites += sends_gradients ? 1 : 0;
      // Both ways of a ring of two are the slower one's in the layout's times.
      if (sends_gradients)
        ASSERT_LE(end, plan.iteration) << text;
      else
        ASSERT_EQ(end, plan.iteration) << text;
    }
  }
  EXPECT_GT(of_sites, 10);
}

/// Around nine sites whose links differ, what sums take is the simulator's ring.
TEST(RepresentativeText, HasTheRingOfManySites) {
  Random random{22};
  LayoutProblem problem = test::layout_problem(72);
  problem.sites.clear(), problem.links.clear();
  problem.placings = {{{}, SiteSplit::replicas}};
  for (int from = 0; from < 9; ++from) {
    problem.sites.push_back({fmt::format("site-{}", from), std::nullopt});
    problem.placings[0].sites.push_back(from);
    problem.links.emplace_back();
    for (int to = 0; to < 9; ++to)
      problem.links.back().push_back({Duration{random.between(1'000'000, 90'000'000)},
                                      Bandwidth{1e9 * static_cast<double>(random.between(1, 9))}});
  }
  int equal = 0;
  for (int i = 0; i < 40; ++i) {
    Layout layout;
    layout.data = 9;
    layout.pipeline = test::one_of<int>(random, {1, 2, 4});
    layout.order = layout.pipeline == 1 ? LayoutOrder::gpipe
                                        : test::one_of<LayoutOrder>(
                                              random, {LayoutOrder::one_f_one_b, LayoutOrder::zbv});
    if (is_wave(layout.order)) layout.chunks = 2;
    layout.sharding = test::one_of<profile::ShardingKind>(
        random, {profile::ShardingKind::none, profile::ShardingKind::zero1});
    const LayoutPlan plan = timed(problem, layout);
    const Scenario part =
        scenario::parse_scenario(representative_text(problem, plan, "part"), "part.toml");
    const Schedule schedule = schedule::generate(to_string(layout.order), part);
    Duration end{};
    for (const OpTime& time : sim::simulate(plan::lower(schedule, part)))
      end = std::max(end, time.end);
    const bool one_sum = layout.chunks == 1 && layout.sharding == profile::ShardingKind::none;
    equal += one_sum ? 1 : 0;
    if (one_sum)
      EXPECT_EQ(end, plan.iteration) << i;
    else
      EXPECT_LE(end, plan.iteration) << i;
  }
  EXPECT_GT(equal, 5);
}

TEST(RepresentativeText, HasReplicasThatShareTheWan) {
  const LayoutProblem problem = test::two_sites();
  Layout layout;
  layout.data = 4;
  layout.pipeline = 2;
  layout.placing = 1;
  const LayoutPlan plan = timed(problem, layout);
  const Scenario part =
      scenario::parse_scenario(representative_text(problem, plan, "part", 4), "part.toml");
  EXPECT_EQ(part.parallel.replicas, 4);
  EXPECT_EQ(part.parallel.cell, 4);
}

/// `best` is read from its file, the others are made of the scenario.
Schedule schedule_of(const LayoutPlan& plan, const Scenario& scenario) {
  if (plan.layout.order != LayoutOrder::best)
    return schedule::generate(to_string(plan.layout.order), scenario);
  Schedule read = schedule::read_csv(schedule::write_csv(*plan.schedule), "plan.csv", "best");
  read.replicas = scenario.parallel.replicas;
  return read;
}

TEST(AwareOrder, IsThatOfTheEmittedScenarioAndFits) {
  Random random{4};
  std::map<LayoutOrder, int> made;
  for (LayoutProblem problem : {test::layout_problem(16), test::two_sites(16)}) {
    for (int i = 0; i < 60; ++i) {
      LayoutPlan plan;
      plan.layout = random_layout(random, problem, test::orders_that(true));
      problem.memory = Bytes{random.between(10, 60) * 1'000'000'000};
      if (memory_of(problem, plan.layout) > *problem.memory) continue;
      LayoutTimer timer{problem};
      ASSERT_NE(timer.graph(plan.layout), nullptr);
      const LayoutTimes times = timer.times(plan.layout);
      const auto order = make_aware_order(problem, plan.layout, times);
      if (!order) continue;
      ++made[plan.layout.order];
      plan.schedule = order->schedule;
      plan.iteration = order->makespan;
      const Scenario scenario = emitted(problem, plan);
      const Schedule schedule = schedule_of(plan, scenario);
      ASSERT_FALSE(schedule::first_violation(schedule, scenario));
      ASSERT_EQ(order->makespan, makespan_of(schedule, scenario))
          << scenario_text(problem, plan, "differs");
      ASSERT_LE(least_makespan(plan.layout, times), order->makespan)
          << scenario_text(problem, plan, "below") << schedule::write_csv(schedule);
      ASSERT_LE(order->memory, *problem.memory);
    }
  }
  for (const LayoutOrder order : test::orders_that(true))
    EXPECT_GT(made[order], 5) << to_string(order);
}

/// The bound of one order is none of others that run the same layers.
TEST(LeastOfAnyOrder, HoldsForEveryOrder) {
  Random random{31};
  int below_another_bound = 0;
  for (const LayoutProblem& problem : {test::layout_problem(), test::two_sites()})
    for (int i = 0; i < 60; ++i) {
      const Layout one = random_layout(random, problem, {LayoutOrder::one_f_one_b});
      const Duration bound_of_one = timed(problem, one).bound;
      for (const LayoutOrder order : test::orders_that(false)) {
        Layout layout = one;
        layout.order = order;
        layout.chunks = is_wave(order) || order == LayoutOrder::interleaved ? 2 : 1;
        if (!why_no_layout(problem, layout).empty()) continue;
        LayoutTimer timer{problem};
        ASSERT_NE(timer.graph(layout), nullptr);
        const Duration least = least_of_any_order(layout, timer.times(layout));
        const LayoutPlan plan = timed(problem, layout);
        EXPECT_LE(least, plan.bound) << to_string(order);
        EXPECT_LE(least, plan.iteration) << to_string(order);
        below_another_bound += plan.iteration < bound_of_one ? 1 : 0;
      }
    }
  EXPECT_GT(below_another_bound, 5);
}

/// Of pipelines that lend each other their links: as if each had those of all.
Duration least_with_pooled_links(const LayoutProblem& problem, const Layout& layout,
                                 int pipelines) {
  LayoutTimer timer{problem};
  EXPECT_NE(timer.graph(layout), nullptr);
  LayoutTimes times = timer.times(layout);
  for (LayoutTimes::Border& border : times.borders) border.transfer /= pipelines;
  return least_of_any_order(layout, times);
}

TEST(LeastOfAnyOrder, HoldsForOrdersThatKnowTheLinks) {
  Random random{32};
  std::map<LayoutOrder, int> made;
  for (const LayoutProblem& problem : {test::layout_problem(16), test::two_sites(16)})
    for (int i = 0; i < 60; ++i) {
      const Layout layout = random_layout(random, problem, test::orders_that(true));
      LayoutTimer timer{problem};
      ASSERT_NE(timer.graph(layout), nullptr);
      const auto order = make_aware_order(problem, layout, timer.times(layout));
      if (!order) continue;
      ++made[layout.order];
      const int pipelines = layout.order == LayoutOrder::atlas ? layout.data : 1;
      EXPECT_LE(least_with_pooled_links(problem, layout, pipelines), order->makespan)
          << to_string(layout.order) << ' ' << i;
    }
  for (const LayoutOrder order : test::orders_that(true))
    EXPECT_GT(made[order], 5) << to_string(order);
}

/// Of the representative, which is searched further: with turns on the WAN where stages are apart,
/// with collectives hidden where replicas are.
TEST(LeastOfAnyOrder, HoldsForTurnsAndOverlapsOfTheRepresentative) {
  const LayoutProblem problem = test::two_sites();
  Layout layout;
  layout.data = 4;
  layout.pipeline = 2;
  layout.placing = 1;
  const auto part_of = [&](int cell) {
    return scenario::parse_scenario(
        representative_text(problem, timed(problem, layout), "part", cell), "part.toml");
  };
  const Scenario in_turns = part_of(4);
  const Schedule turns = schedule::generate("atlas", in_turns);
  ASSERT_EQ(turns.cell, 4);
  EXPECT_LE(least_with_pooled_links(problem, layout, 4), makespan_of(turns, in_turns));

  layout.placing = 2;
  LayoutProblem without_links = problem;
  for (std::vector<SiteLink>& row : without_links.links) row.assign(row.size(), {});
  const Duration least = least_with_pooled_links(without_links, layout, 1);
  const Scenario apart = part_of(1);
  ASSERT_EQ(apart.parallel.replicas, 2);
  const Schedule schedule = schedule::generate("1f1b", apart);
  int played = 0;
  for (const collective::Overlap& overlap : collective::overlaps())
    if (const auto result = evaluate_overlap(overlap, schedule, apart)) {
      ++played;
      EXPECT_LE(least, result->makespan) << overlap.name;
    }
  EXPECT_GT(played, 0);
}

TEST(ScenarioText, IsTomlWhateverTheModelsName) {
  LayoutProblem problem = test::layout_problem();
  problem.model.model = "a \"large\"\n\\model";
  Layout layout;
  layout.pipeline = 2;
  const Scenario scenario = emitted(problem, timed(problem, layout));
  EXPECT_EQ(scenario.model->name, problem.model.model);
}

/// On GPUs that hold what the plan says and no more.
TEST(MemoryOf, HoldsTheEmittedScenario) {
  Random random{6};
  for (LayoutProblem problem : {test::layout_problem(), test::two_sites()}) {
    for (int i = 0; i < 100; ++i) {
      const Layout layout = random_layout(random, problem);
      problem.memory = memory_of(problem, layout);
      const Scenario scenario = emitted(problem, timed(problem, layout));
      const Schedule schedule = schedule::generate(to_string(layout.order), scenario);
      ASSERT_TRUE(schedule::over_budget(schedule, scenario).empty());
      for (const schedule::DeviceNeed& need : schedule::device_memory(schedule, scenario))
        ASSERT_TRUE(need.fits()) << need.total().count() - need.capacity->count() << " over, "
                                 << to_string(layout.order) << ' ' << layout.tensor << ' '
                                 << layout.data << ' ' << layout.pipeline << ' '
                                 << to_string(layout.recompute);
    }
  }
}

/// 1F1B with one microbatch: to the second stage and back.
TEST(OrderTimer, TakesTheWayBackOfALink) {
  LayoutProblem problem = test::two_sites(4);
  Layout layout;
  layout.pipeline = 2;
  layout.micro_batch = 4;
  layout.placing = 1;
  const LayoutPlan uneven = timed(problem, layout);
  problem.links[1][0] = problem.links[0][1];
  const LayoutPlan even = timed(problem, layout);
  const Bytes message = LayoutTimer{problem}.times(layout).message;
  const Duration longer = 15ms + message / 5_Gbps - message / 20_Gbps;
  EXPECT_EQ(uneven.iteration - even.iteration, longer);
  EXPECT_EQ(uneven.bound - even.bound, longer);
}

TEST(OrderTimer, AgreesWithPredict) {
  Random random{3};
  LayoutProblem problem = test::layout_problem();
  Layout ends_apart;  // stages 0 and 1 share a node, the ends do not
  ends_apart.tensor = 2;
  ends_apart.pipeline = 8;
  ends_apart.chunks = 2;
  ends_apart.order = LayoutOrder::interleaved;
  for (int i = 0; i < 120; ++i) {
    if (i == 60) problem.model.bucket = 25_MiB;
    const Layout layout = i % 60 == 0 ? ends_apart : random_layout(random, problem);
    if (splits_backward(layout.order)) continue;
    const auto predicted =
        predict({row_of(problem, layout)}, {}, {profile::Extrapolation::allowed}).front();
    EXPECT_NEAR(double(timed(problem, layout).iteration.count()),
                double(predicted.iteration.count()), 400)
        << to_string(layout.order) << ' ' << layout.tensor << ' ' << layout.data << ' '
        << layout.pipeline << ' ' << layout.chunks;
  }
}

TEST(LeastMakespan, IsNotAboveTheMakespan) {
  Random random{7};
  for (const LayoutProblem& problem : {test::layout_problem(), test::two_sites()}) {
    double tightest = 0;
    for (int i = 0; i < 200; ++i) {
      const LayoutPlan plan = timed(problem, random_layout(random, problem));
      ASSERT_LE(plan.bound, plan.iteration) << to_string(plan.layout.order);
      tightest = std::max(tightest, double(plan.bound.count()) / double(plan.iteration.count()));
    }
    EXPECT_GT(tightest, 0.98);  // one replica on one stage has no bubble
  }
}

TEST(OrderTimer, PlaysABlockOnce) {
  const LayoutProblem problem = test::layout_problem();
  Layout layout;
  layout.pipeline = 4;
  layout.micro_batch = 2;
  LayoutTimer timer{problem};
  OrderTimer orders;
  ASSERT_NE(timer.graph(layout), nullptr);
  (void)orders.makespan(layout, timer.times(layout));
  EXPECT_EQ(orders.blocks(), 4 * 32 * 2);
}

// The head's product is 50,257 wide: 4 times as wide as the widest measured one is near enough.
TEST(LayoutTimer, RefusesProductsMoreThanFourTimesBeyondTheMeasured) {
  const auto is_refused = [](double widest) {
    profile::Machine machine = test::selene();
    machine.gpu.matmul =
        profile::MatmulLaw{{5000, 100, 64, 0, 0}, {{{64, 64, 64}, 1e4}, {{widest, 64, 64}, 1e5}}};
    LayoutProblem problem = test::layout_problem();
    problem.machine = &machine;
    problem.extrapolation = profile::Extrapolation::refused;
    return LayoutTimer{problem}.graph(Layout{}) == nullptr;
  };
  EXPECT_FALSE(is_refused(50257 / 4.0));
  EXPECT_TRUE(is_refused(50256 / 4.0));
}

}  // namespace
}  // namespace longhaul::planner
