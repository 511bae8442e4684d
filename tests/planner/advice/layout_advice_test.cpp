#include "planner/advice/layout_advice.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/advice/failures.hpp"
#include "planner/layouts/problems.hpp"
#include "planner/search/makespan.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

LayoutAdviceOptions layouts_by_moves(std::int64_t moves, AdviceGoal goal = AdviceGoal::time) {
  LayoutAdviceOptions options;
  options.searches.moves = moves;
  options.searches.threads = 1;
  options.goal = goal;
  return options;
}

LayoutSpace some_space(Random& random) {
  LayoutSpace space;
  space.tensor = test::some_of<int>(random, {1, 2, 4, 8});
  space.data = test::some_of<int>(random, {1, 2, 4});
  space.pipeline = test::some_of<int>(random, {1, 2, 4});
  space.micro_batch = test::some_of<int>(random, {1, 2, 4});
  space.orders = test::some_of<LayoutOrder>(
      random, {LayoutOrder::gpipe, LayoutOrder::one_f_one_b, LayoutOrder::interleaved,
               LayoutOrder::zb_h1, LayoutOrder::zbv});
  space.recompute = {RecomputeKind::none, RecomputeKind::selective};
  space.sharding = {profile::ShardingKind::none, profile::ShardingKind::zero1};
  return space;
}

void expect_sound(const LayoutAdvice& found) {
  ASSERT_FALSE(found.advice.plans.empty());
  if (found.bound) {
    EXPECT_LE(*found.bound, found.advice.best().score);
  }
  for (const AdvisedPlan& plan : found.advice.plans) {
    ASSERT_LT(at(plan.scenario), found.layouts.size());
    const Scenario& scenario = found.layouts[at(plan.scenario)].scenario;
    EXPECT_FALSE(schedule::first_violation(plan.schedule, scenario)) << plan.schedule.name;
    EXPECT_GE(plan.makespan, plan.bound.lower_bound) << plan.schedule.name;
    if (plan.overlap.empty()) {
      EXPECT_EQ(plan.makespan, makespan_of(plan.schedule, scenario));
    }
  }
  if (!found.advice.baseline) return;
  Score gained = 0;
  for (const IdeaValue& each : found.advice.waterfall) gained += each.added;
  EXPECT_EQ(gained, *found.advice.baseline - found.advice.best().score);
}

TEST(LayoutAdvice, IsNeverWorseThanTheSearchOfLayouts) {
  int better = 0, several_sites = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    LayoutProblem problem = seed % 3 == 0 ? test::layout_problem(16) : test::two_sites(16);
    if (seed % 2 == 0) problem.sites.back().price = 0.5;
    const LayoutSpace space = some_space(random);
    const LayoutSearch search = search_layouts(problem, space);
    for (const AdviceGoal goal : {AdviceGoal::time, AdviceGoal::cost}) {
      const LayoutAdviceOptions options = layouts_by_moves(50, goal);
      const Result<LayoutAdvice> found = advise_layouts(problem, space, options);
      ASSERT_EQ(static_cast<bool>(found), !search.plans.empty());
      if (!found) continue;
      expect_sound(*found);
      const LayoutPlan& first =
          goal == AdviceGoal::time ? search.plans.front() : search.plans.back();
      const double cost = first.cost() / 3600e9 * options.dollars_per_gpu_hour * 1e9;
      const Score alone = goal == AdviceGoal::time ? first.iteration.count() : std::llround(cost);
      EXPECT_LE(found->advice.best().score, alone);
      better += found->advice.best().score < alone ? 1 : 0;
      const Layout& layout = found->layouts[at(found->advice.best().scenario)].layout.layout;
      several_sites += problem.is_spread(layout) ? 1 : 0;
    }
  }
  EXPECT_GT(better, 10) << "other ideas are of use";
  EXPECT_GT(several_sites, 0);
}

// Sums of gradients between sites hide under backward passes.
TEST(LayoutAdvice, HidesGradientsBetweenSites) {
  LayoutProblem problem = test::two_sites();
  problem.placings = {{{0, 1}, SiteSplit::replicas}};
  LayoutSpace space;
  space.tensor = {8};
  space.data = {2};
  space.micro_batch = {2};
  const LayoutAdvice found = advise_layouts(problem, space, layouts_by_moves(50)).or_throw();
  expect_sound(found);
  const auto overlap = std::ranges::find(found.advice.waterfall, Idea::overlap, &IdeaValue::idea);
  EXPECT_GT(overlap->alone, 0);
  EXPECT_FALSE(has(found.advice.best().ideas, Idea::layout)) << "the rule of thumb has it, too";
}

// A layout whose orders are all late alone is where an overlap begins that is in time.
TEST(LayoutAdvice, StartsFromWhatIsLateAlone) {
  LayoutProblem problem = test::two_sites();
  problem.placings = {{{0, 1}, SiteSplit::replicas}};
  LayoutSpace space;
  space.tensor = {8};
  space.data = {2};
  int tried = 0;
  for (const int micro_batch : {4, 8, 16, 32}) {
    space.micro_batch = {micro_batch};
    LayoutAdviceOptions options = layouts_by_moves(50);
    const LayoutAdvice free = advise_layouts(problem, space, options).or_throw();
    const Score best = free.advice.best().score;
    Score alone = *free.advice.baseline;
    for (const AdvisedPlan& plan : free.advice.plans)
      if (plan.overlap.empty()) alone = std::min(alone, plan.score);
    if (best == alone) continue;  // an order hides as much
    ++tried;
    options.searches.longest = Duration{best + (alone - best) / 2};
    const LayoutAdvice in_time = advise_layouts(problem, space, options).or_throw();
    expect_sound(in_time);
    EXPECT_EQ(in_time.advice.best().score, best);
    EXPECT_EQ(in_time.advice.best().ideas, free.advice.best().ideas);
    EXPECT_FALSE(in_time.advice.baseline);
    options.searches.longest = Duration{best - 1};
    EXPECT_FALSE(advise_layouts(problem, space, options));
  }
  EXPECT_GT(tried, 0);
}

// Its own order's bound is none of others: advice tries all of them on a layout.
TEST(LayoutAdvice, HasABoundOfEveryOrder) {
  LayoutSpace space;
  space.tensor = {4};
  space.pipeline = {4};
  space.micro_batch = {2};
  space.orders = {LayoutOrder::gpipe};
  space.recompute = {RecomputeKind::none};
  LayoutProblem problem = test::layout_problem(16);
  const LayoutSearch search = search_layouts(problem, space);
  ASSERT_EQ(search.plans.size(), 1U);
  const LayoutAdvice found = advise_layouts(problem, space, layouts_by_moves(50)).or_throw();
  expect_sound(found);
  EXPECT_LT(found.advice.best().score, search.plans.front().bound.count());
  ASSERT_TRUE(found.bound);
  EXPECT_EQ(*found.bound, search.soonest->bound.count());
}

/// Nodes of two or three sites under a model whose messages take long beside its blocks.
LayoutProblem nodes_of_sites(Random& random, profile::Machine& machine) {
  LayoutProblem problem = test::layout_problem(static_cast<int>(4 * random.between(1, 3)));
  problem.model.vocabulary = 1;  // otherwise the ends step longest
  problem.model.hidden = 512;
  problem.model.intermediate = 2048;
  machine = test::selene();
  machine.node_bytes_per_ns /= test::one_of<double>(random, {1, 4, 16, 64});
  problem.machine = &machine;
  const auto count = to_size(random.between(2, 3));
  problem.sites.clear();
  problem.placings = {{{}, SiteSplit::stages}};
  for (std::size_t site = 0; site < count; ++site) {
    problem.sites.push_back({fmt::format("site{}", site), std::nullopt});
    problem.placings.front().sites.push_back(static_cast<int>(site));
  }
  problem.links.assign(count, std::vector<SiteLink>(count));
  for (std::vector<SiteLink>& row : problem.links)
    for (SiteLink& link : row)
      link = {Duration{random.between(0, 200'000)},
              Bandwidth{1e9 * static_cast<double>(random.between(20, 2000))}};
  return problem;
}

// Pipelines of a cell lend each other the borders between nodes of one site, too.
TEST(LayoutAdvice, HasABoundThatNoScheduleOnNodesOfSitesIsBelow) {
  int tried = 0, with_turns = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    profile::Machine machine;
    const LayoutProblem problem = nodes_of_sites(random, machine);
    LayoutSpace space;
    space.tensor = {1};
    space.data = {test::one_of<int>(random, {2, 4})};
    space.pipeline = {test::one_of<int>(random, {4, 6, 8})};
    space.micro_batch = {1};
    space.recompute = {
        test::one_of<RecomputeKind>(random, {RecomputeKind::none, RecomputeKind::full})};
    LayoutAdviceOptions options = layouts_by_moves(30);
    options.searches.keeps_all = true;
    const LayoutAdvice found = advise_layouts(problem, space, options).or_throw();
    ASSERT_TRUE(found.bound);
    ++tried;
    for (const AdvisedPlan& plan : found.advice.all) {
      EXPECT_GE(plan.score, *found.bound) << plan.schedule.name;
      with_turns += has(plan.ideas, Idea::turns) ? 1 : 0;
    }
  }
  EXPECT_GT(with_turns, tried);
}

// The best so far; of layouts that it did not look at nothing is claimed.
TEST(LayoutAdvice, ThatIsStoppedHasNoBound) {
  LayoutSpace space;
  space.tensor = {4, 8};
  space.pipeline = {1, 2, 4};
  space.micro_batch = {1, 2, 4};
  LayoutAdviceOptions options = layouts_by_moves(50);
  int asked = 0;
  options.searches.stopped = [&] { return ++asked > 4; };
  const LayoutAdvice found = advise_layouts(test::two_sites(16), space, options).or_throw();
  expect_sound(found);
  EXPECT_TRUE(found.advice.is_stopped);
  EXPECT_FALSE(found.bound);
  EXPECT_TRUE(advise_layouts(test::two_sites(16), space, layouts_by_moves(50)).or_throw().bound);
}

TEST(LayoutAdvice, SaysWhyThereIsNone) {
  LayoutProblem problem = test::layout_problem();
  problem.memory = Bytes{1};
  const Result<LayoutAdvice> found = advise_layouts(problem, {}, layouts_by_moves(1));
  ASSERT_FALSE(found);
  EXPECT_THAT(found.refusal().reason, ::testing::HasSubstr("memory: 1"));
}

TEST(LayoutAdvice, IsTheSameWhereMovesEndItsSearches) {
  const LayoutProblem problem = test::two_sites(16);
  LayoutSpace space;
  space.pipeline = {1, 2, 4};
  space.tensor = {4, 8};
  const LayoutAdvice first = advise_layouts(problem, space, layouts_by_moves(100)).or_throw();
  const LayoutAdvice second = advise_layouts(problem, space, layouts_by_moves(100)).or_throw();
  ASSERT_EQ(first.advice.plans.size(), second.advice.plans.size());
  for (std::size_t i = 0; i < first.advice.plans.size(); ++i)
    EXPECT_EQ(first.advice.plans[i].schedule, second.advice.plans[i].schedule);
}

TEST(Failures, LoseByYoungsFormula) {
  using namespace std::chrono_literals;
  EXPECT_EQ(share_lost({}, 1'000'000), 0);
  // 50,000 h of one GPU are 175,781 s of 1,024: the square root of 120 / 175,781.
  EXPECT_NEAR(share_lost({50'000h, 60s}, 1'024), 0.026128, 1e-6);
  EXPECT_EQ(share_lost({1h, 60s}, 1 << 20), 1) << "it fails before a checkpoint is written";
}

}  // namespace
}  // namespace longhaul::planner
