#include "planner/layouts/layout_search.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/layouts/layout_front.hpp"
#include "planner/layouts/problems.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul::planner {
namespace {

using test::some_of;
using ::testing::HasSubstr;

LayoutSpace random_space(Random& random) {
  LayoutSpace space;
  space.tensor = some_of<int>(random, {1, 2, 4, 8});
  space.data = some_of<int>(random, {1, 2, 3, 4, 8});
  space.pipeline = some_of<int>(random, {1, 2, 3, 4, 8});
  space.micro_batch = some_of<int>(random, {1, 2, 4});
  space.chunks = some_of<int>(random, {2, 4});
  space.orders = some_of(random, test::orders_that(false));
  const auto recompute = every<RecomputeKind>();
  space.recompute = some_of<RecomputeKind>(random, {recompute.begin(), recompute.end()});
  space.sharding = some_of<profile::ShardingKind>(
      random, {profile::ShardingKind::none, profile::ShardingKind::zero1});
  return space;
}

std::string told(const LayoutSearch& search) {
  std::string text;
  for (const LayoutPlan& plan : search.plans)
    text +=
        fmt::format("{},{},{} b{} v{} {} {} {} {}: {}\n", plan.layout.tensor, plan.layout.data,
                    plan.layout.pipeline, plan.layout.micro_batch, plan.layout.chunks,
                    to_string(plan.layout.order), to_string(plan.layout.recompute),
                    to_string(plan.layout.sharding), plan.layout.placing, plan.iteration.count());
  return text;
}

TEST(SearchLayouts, FindsWhatEveryLayoutEvaluatedGives) {
  Random random{200};
  std::int64_t pruned = 0;
  for (int i = 0; i < 200; ++i) {
    LayoutProblem problem = i % 4 == 3 ? test::two_sites(24) : test::layout_problem(24);
    if (i % 8 == 7) problem.sites.back().price = 0.25 * static_cast<double>(random.between(0, 3));
    if (random.uniform() < 0.5) problem.memory = Bytes{random.between(4, 40) * 1'000'000'000};
    const LayoutSpace space = random_space(random);
    LayoutSearchOptions options;
    const LayoutSearch bounded = search_layouts(problem, space, options);
    options.exhaustive = true;
    const LayoutSearch all = search_layouts(problem, space, options);
    ASSERT_EQ(told(bounded), told(all)) << "space " << i;
    ASSERT_EQ(bounded.feasible, all.evaluated);
    std::int64_t refused = 0;
    for (const auto& [reason, count] : bounded.refused) refused += count;
    ASSERT_EQ(bounded.points, bounded.feasible + refused);
    ASSERT_EQ(bounded.feasible,
              bounded.evaluated + (bounded.pruned.empty() ? 0 : bounded.pruned.at("bound")));
    pruned += bounded.feasible - bounded.evaluated;
  }
  EXPECT_GT(pruned, 1000);
}

// Orders that know the links, beside static ones, on small spaces.
TEST(SearchLayouts, FindsWhatEveryOrderThatKnowsItsLinksGives) {
  Random random{18};
  std::int64_t pruned = 0, aware = 0;
  for (int i = 0; i < 60; ++i) {
    LayoutProblem problem = i % 3 == 2 ? test::layout_problem(12) : test::two_sites(12);
    if (random.uniform() < 0.5) problem.memory = Bytes{random.between(8, 40) * 1'000'000'000};
    LayoutSpace space = random_space(random);
    space.pipeline = some_of<int>(random, {1, 2, 3, 4});
    space.micro_batch = {1, 2};
    space.orders = some_of(random, test::orders_that(true));
    for (const LayoutOrder order : some_of(random, test::orders_that(false)))
      space.orders.push_back(order);
    LayoutSearchOptions options;
    const LayoutSearch bounded = search_layouts(problem, space, options);
    options.exhaustive = true;
    const LayoutSearch all = search_layouts(problem, space, options);
    ASSERT_EQ(told(bounded), told(all)) << "space " << i;
    pruned += all.evaluated - bounded.evaluated;
    for (const LayoutPlan& plan : all.plans) {
      if (!knows_links(plan.layout.order)) continue;
      ++aware;
      ASSERT_TRUE(plan.schedule);
      ASSERT_LE(plan.bound, plan.iteration);
      ASSERT_TRUE(!problem.memory || plan.memory <= *problem.memory);
    }
  }
  EXPECT_GT(pruned, 300);
  EXPECT_GT(aware, 30);
}

// Two stages 10 ms apart (25 ms on the way back): 1F1B waits for each gradient, the greedy sends
// more microbatches ahead.
TEST(SearchLayouts, TakesTheGreedyOverTwoDatacenters) {
  LayoutProblem problem = test::two_sites(16);
  problem.placings = {{{0, 1}, SiteSplit::stages}};
  LayoutSpace space;
  space.pipeline = {2};
  space.tensor = {8};
  space.orders = test::orders_that(false);
  LayoutSearchOptions options;
  options.exhaustive = options.keeps_all = true;
  const LayoutSearch without = search_layouts(problem, space, options);
  space.orders.push_back(LayoutOrder::cross_ud);
  const LayoutSearch with = search_layouts(problem, space, options);
  std::map<LayoutOrder, Duration> times;
  for (const LayoutPlan& plan : with.plans) times[plan.layout.order] = plan.iteration;
  ASSERT_EQ(times.size(), without.plans.size() + 1);
  for (const LayoutPlan& plan : without.plans)
    EXPECT_LT(times.at(LayoutOrder::cross_ud), plan.iteration) << to_string(plan.layout.order);
  EXPECT_LT(double(times.at(LayoutOrder::cross_ud).count()),
            0.9 * double(times.at(LayoutOrder::one_f_one_b).count()));
  options = {};
  const LayoutSearch best = search_layouts(problem, space, options);
  ASSERT_EQ(best.plans.size(), 1U);
  EXPECT_EQ(best.plans.front().layout.order, LayoutOrder::cross_ud);
}

/// A cheaper site far away: what is cheapest lies there, what is fastest does not.
TEST(SearchLayouts, CountsEachSitesPrice) {
  LayoutProblem problem = test::two_sites();
  problem.placings.push_back({{1}, SiteSplit::stages});
  problem.sites[1].price = 0.5;
  LayoutSpace space;
  space.data = {4};
  LayoutSearchOptions options;
  options.exhaustive = options.keeps_all = true;
  const LayoutSearch search = search_layouts(problem, space, options);
  std::map<int, double> hourly;
  for (const LayoutPlan& plan : search.plans) hourly[plan.layout.placing] = plan.priced_gpus;
  // West alone, two replicas in each, east alone; one stage does not divide.
  EXPECT_THAT(hourly,
              ::testing::ElementsAre(std::pair{0, 4.0}, std::pair{2, 3.0}, std::pair{3, 2.0}));
  const std::set<Layout> front = layouts_on_front(search.plans);
  ASSERT_EQ(front.size(), 1U);
  EXPECT_EQ(front.begin()->placing, 3) << "as fast as west, at half the price";
}

TEST(SearchLayouts, OfEqualLayoutsTakesTheLesser) {
  LayoutProblem problem = test::layout_problem(8);
  LayoutSpace space;
  space.orders = {LayoutOrder::gpipe,
                  LayoutOrder::one_f_one_b};  // the same on one stage with M = 1
  space.micro_batch = {8};
  for (const bool exhaustive : {false, true}) {
    LayoutSearchOptions options;
    options.exhaustive = exhaustive;
    const LayoutSearch search = search_layouts(problem, space, options);
    ASSERT_EQ(search.plans.size(), 1U);
    EXPECT_EQ(search.plans.front().layout.order, LayoutOrder::gpipe);
  }
}

TEST(SearchLayouts, AsksMemoryFirst) {
  LayoutProblem problem = test::layout_problem();
  problem.memory = 1_GiB;
  const LayoutSearch search = search_layouts(problem, {});
  EXPECT_TRUE(search.plans.empty());
  EXPECT_EQ(search.refused.at("memory"), 1);
  EXPECT_EQ(search.evaluated, 0);
}

TEST(SearchLayouts, RefusesWhatHasTooManyGpus) {
  LayoutProblem problem = test::layout_problem(1 << 20);
  LayoutSpace space;
  space.data = {1, 1 << 20};
  space.pipeline = {1, 1 << 20};
  space.tensor = {1, 1 << 20};
  space.orders = {LayoutOrder::interleaved};
  space.chunks = {1 << 12};
  const LayoutSearch search = search_layouts(problem, space);
  EXPECT_EQ(search.refused.at("more than 2^20 GPUs"), 4);
  EXPECT_EQ(search.feasible, 0);
}

TEST(SearchLayouts, SaysHowFarItIsWhenStopped) {
  const LayoutProblem problem = test::layout_problem();
  LayoutSpace space;
  space.data = {1, 2, 4, 8};
  space.pipeline = {1, 2, 4, 8};
  LayoutSearchOptions options;
  options.exhaustive = true;
  int asked = 0;
  options.is_stopped = [&] { return ++asked > 1; };
  const LayoutSearch search = search_layouts(problem, space, options);
  EXPECT_EQ(search.evaluated, 8);
  EXPECT_EQ(search.pruned.at("stopped"), 8);
  EXPECT_FALSE(search.plans.empty());
  ASSERT_TRUE(search.gap_time.has_value());
  EXPECT_GT(*search.gap_time, 0);
  EXPECT_LT(*search.gap_time, 10);
}

TEST(SearchLayouts, HasAPlanWhenStoppedWhileItLooks) {
  const LayoutProblem problem = test::layout_problem();
  LayoutSpace space;
  space.data = {1, 2, 4, 8};
  space.pipeline = {1, 2, 4, 8};
  space.micro_batch = {1, 2, 4, 8};
  space.orders = test::orders_that(false);
  const auto recompute = every<RecomputeKind>();
  space.recompute = {recompute.begin(), recompute.end()};
  space.tensor = {1, 2, 4, 8};
  LayoutSearchOptions options;
  options.is_stopped = [] { return true; };
  const LayoutSearch search = search_layouts(problem, space, options);
  EXPECT_EQ(search.points, 4 * 4 * 4 * 6 * 3 * 4);
  EXPECT_EQ(search.refused.at("stopped"), search.points - 1023);
  EXPECT_EQ(search.evaluated + search.pruned.at("bound"), 8);
  EXPECT_EQ(search.pruned.at("stopped"), search.feasible - 8);
  EXPECT_FALSE(search.plans.empty());
  EXPECT_FALSE(search.gap_time.has_value());
}

TEST(SearchLayouts, LeavesOutWhatTakesTooLong) {
  const LayoutProblem problem = test::layout_problem();
  LayoutSpace space;
  space.data = {1, 2, 4, 8};
  LayoutSearchOptions options;
  const LayoutSearch all = search_layouts(problem, space, options);
  ASSERT_GT(all.plans.size(), 2U);
  options.longest = all.plans[1].iteration;
  EXPECT_EQ(search_layouts(problem, space, options).plans.size(), 2U);
  options.keeps_all = true;
  const auto late = [&](const LayoutPlan& plan) { return plan.iteration > *options.longest; };
  EXPECT_TRUE(std::ranges::none_of(search_layouts(problem, space, options).plans, late));
  options.keeps_late = true;
  const LayoutSearch both = search_layouts(problem, space, options);
  EXPECT_TRUE(std::ranges::any_of(both.plans, late));
  EXPECT_FALSE(std::ranges::all_of(both.plans, late));
  ASSERT_TRUE(both.soonest && both.thriftiest);
  for (const LayoutPlan& plan : all.plans) {
    EXPECT_LE(both.soonest->bound, plan.iteration);
    if (plan.iteration <= *options.longest) {
      EXPECT_LE(both.thriftiest->cost(), plan.cost());
    }
  }
}

LayoutProblem problem_of_two(const std::string& of_link, const std::string& more = "") {
  const Scenario scenario = scenario::parse_scenario(
      "[model]\npreset = \"gpt-3.6b\"\n[parallel]\nstages = 1\nglobal_batch = 64\n"
      "[[datacenter]]\nname = \"a\"\n[[datacenter]]\nname = \"b\"\n[[link]]\n"
      "between = [\"a\", \"b\"]\nlatency = \"10ms\"\nbandwidth = \"5Gbps\"\n" +
          of_link + '\n' + more,
      "two.toml", {}, scenario::Placing::optional);
  return layout_problem(scenario, profile::machine_named("selene"), {});
}

TEST(LayoutProblem, RefusesWhatTimesLeaveOut) {
  EXPECT_EQ(problem_of_two("").placings.size(), 4U);
  for (const auto& [of_link, more, why] :
       {std::tuple{"sharing = \"datacenter\"", "", "a to b has sharing = \"datacenter\""},
        {"aggregate = \"20Gbps\"", "", "aggregate"},
        {"jitter = 0.1", "", "jitter"},
        {"loss = 0.1", "", "loss"},
        {"outage = [\"1s\", \"1s\"]", "", "outage"},
        {"", "[[node]]\ndatacenter = \"a\"\negress = \"5Gbps\"\n", "[[node]]"}}) {
    try {
      (void)problem_of_two(of_link, more);
      FAIL() << of_link << more;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(why));
    }
  }
}

TEST(LayoutProblem, TakesTheFirstOfManySites) {
  std::string more;
  for (int site = 2; site < 9; ++site)
    more += fmt::format("[[datacenter]]\nname = \"s{}\"\ngpus = {}\n", site, site == 5 ? 64 : 8);
  more += "[[link]]\nbetween = \"all\"\nlatency = \"20ms\"\nbandwidth = \"5Gbps\"\n";
  const LayoutProblem problem = problem_of_two("", more);
  ASSERT_EQ(problem.placings.size(), 5U);
  EXPECT_EQ(problem.placings[0], (SiteChoice{{5}, SiteSplit::stages}));
  EXPECT_EQ(problem.placings[1], (SiteChoice{{0, 1}, SiteSplit::replicas}));
  EXPECT_EQ(problem.placings[3].sites.size(), 8U);
  EXPECT_EQ(problem.placings[4].sites, (std::vector{0, 1, 2, 3, 4, 5, 6, 7, 8}));
}

TEST(LayoutFront, KeepsWhatNoOtherBeats) {
  LayoutFront front;
  const auto plan = [](int gpus, int ns) {
    LayoutPlan made;
    made.layout.data = gpus;
    made.priced_gpus = gpus;
    made.iteration = Duration{ns};
    return made;
  };
  front.add(plan(4, 100));
  front.add(plan(8, 60));
  front.add(plan(8, 50));  // as much GPU time as the first, faster: beats both
  front.add(plan(16, 40));
  front.add(plan(16, 60));  // beaten
  std::vector<int> times;
  for (const LayoutPlan& each : front.plans())
    times.push_back(static_cast<int>(each.iteration.count()));
  EXPECT_THAT(times, ::testing::ElementsAre(40, 50));
  EXPECT_TRUE(front.beats(Duration{60}, 8, plan(8, 60).layout));
  EXPECT_FALSE(front.beats(Duration{39}, 64, plan(64, 39).layout));
}

/// Of 20,000 plans: what none of them beats, which an exhaustive search finds.
TEST(LayoutsOnFront, AreTheSearchs) {
  std::vector<LayoutPlan> plans;
  Random random{13};
  for (int i = 1; i <= 20'000; ++i) {
    LayoutPlan plan;
    plan.layout.data = static_cast<int>(random.between(1, 64));
    plan.layout.placing = i;
    plan.priced_gpus = plan.layout.data * (i % 3 == 0 ? 0.5 : 1.0);
    plan.iteration = Duration{random.between(1'000, 1'000'000)};
    plans.push_back(plan);
  }
  const std::set<Layout> front = layouts_on_front(plans);
  ASSERT_FALSE(front.empty());
  for (const LayoutPlan& plan : plans) {
    if (!front.contains(plan.layout)) continue;
    for (const LayoutPlan& other : plans)
      ASSERT_TRUE(other.layout == plan.layout || other.iteration > plan.iteration ||
                  other.cost() > plan.cost());
  }
}

TEST(Divisors, AreAllOfThem) {
  EXPECT_THAT(divisors(1), ::testing::ElementsAre(1));
  EXPECT_THAT(divisors(36), ::testing::ElementsAre(1, 2, 3, 4, 6, 9, 12, 18, 36));
  EXPECT_THAT(divisors(13), ::testing::ElementsAre(1, 13));
}

TEST(ReadCounts, TakesListsAndRanges) {
  EXPECT_THAT(read_counts("--data", "8,1:3,2", 100), ::testing::ElementsAre(1, 2, 3, 8));
  for (const char* const bad : {"", "1,", "3:1", "0", "x", "101"})
    EXPECT_THROW((void)read_counts("--data", bad, 100), Error) << bad;
}

}  // namespace
}  // namespace longhaul::planner
