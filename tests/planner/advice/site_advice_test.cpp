#include "planner/advice/site_advice.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planner/make_schedule.hpp"
#include "planner/search/makespan.hpp"
#include "planner/site_scenarios.hpp"
#include "planner/sites/cell_scenario.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

SiteAdviceOptions sites_by_moves(const GpuInventory& inventory, std::int64_t moves,
                                 AdviceGoal goal = AdviceGoal::time) {
  SiteAdviceOptions options;
  options.searches.moves = moves;
  options.searches.threads = 1;
  options.goal = goal;
  options.placed = [&](const SiteLayout& layout) { return placed_scenario(inventory, layout); };
  return options;
}

/// What the site planner alone answers, as the simulator plays it whole; nothing where it does not
/// fit.
std::optional<Score> score_of_plan(const GpuInventory& inventory, const SitePlan& plan,
                                   const SiteAdviceOptions& options) {
  const Scenario placed = placed_scenario(inventory, plan.layout);
  const Result<ScheduleResult> made = try_make(parse_schedule(plan.schedule), placed);
  if (!made || schedule::first_violation(made->schedule, placed)) return std::nullopt;
  return score_of(inventory, plan.layout, makespan_of(made->schedule, placed), options);
}

/// Plans can be played and their scores are of their times; parts add up to the whole.
void expect_sound(const GpuInventory& inventory, const SiteAdvice& found,
                  const SiteAdviceOptions& options) {
  ASSERT_FALSE(found.advice.plans.empty());
  ASSERT_TRUE(found.bound);
  EXPECT_GT(*found.bound, 0);
  EXPECT_LE(*found.bound, found.advice.best().score);
  for (const AdvisedPlan& plan : found.advice.plans) {
    ASSERT_LT(at(plan.scenario), found.places.size());
    const AdvisedPlace& place = found.places[at(plan.scenario)];
    EXPECT_FALSE(schedule::first_violation(plan.schedule, place.scenario)) << plan.schedule.name;
    EXPECT_EQ(place.scenario.parallel.replicas, place.layout.replicas());
    EXPECT_FALSE(has(plan.ideas, Idea::layout) || has(plan.ideas, Idea::prefill));
    if (plan.overlap.empty()) {
      EXPECT_EQ(plan.makespan, makespan_of(plan.schedule, place.scenario));
    }
    EXPECT_EQ(plan.score, score_of(inventory, place.layout, plan.makespan, options));
  }
  if (!found.advice.baseline) return;
  Score gained = 0;
  for (const IdeaValue& each : found.advice.waterfall) {
    EXPECT_GE(each.added, 0);
    EXPECT_GE(each.removed, 0);
    gained += each.added;
  }
  EXPECT_EQ(gained, *found.advice.baseline - found.advice.best().score);
}

/// Neither than a plan of the site planner, nor than all other ideas on the placement that it
/// chooses by itself.
void expect_never_worse(std::uint64_t seed, AdviceGoal goal, int& better) {
  SCOPED_TRACE(seed);
  const Scenario scenario = test::random_sites(seed, 3);
  const GpuInventory inventory{scenario};
  const SiteAdviceOptions options = sites_by_moves(inventory, 100, goal);
  const auto schedules = parse_schedules(schedule::kSitePlannerSchedules);
  const SiteObjective objective =
      goal == AdviceGoal::time ? SiteObjective::throughput : SiteObjective::cost;
  CellTimes cells{inventory, CellModel::relays, 1};
  SiteSearchOptions by_itself;
  by_itself.schedules = schedules;
  by_itself.objective = objective;
  const SiteSearch exact = search_sites(inventory, by_itself, cells);
  const Result<SiteAdvice> found = advise_sites(inventory, options);
  ASSERT_EQ(static_cast<bool>(found), exact.best.has_value());
  if (!found) return;
  expect_sound(inventory, *found, options);
  const Score best = found->advice.best().score;
  if (const auto alone = score_of_plan(inventory, *exact.best, options)) {
    EXPECT_LE(best, *alone) << "than plan --search exact";
  }
  Algorithm1Options how;
  how.schedule = schedules.front();
  how.others.assign(schedules.begin() + 1, schedules.end());
  if (const Result<SitePlans> plans = try_algorithm1(inventory, how, cells))
    for (const SiteObjective by :
         {SiteObjective::throughput, SiteObjective::cost, SiteObjective::time})
      if (const SitePlan* const plan = best_plan(plans->plans, by))
        if (const auto alone = score_of_plan(inventory, *plan, options)) {
          EXPECT_LE(best, *alone) << "than algorithm 1 by " << to_string(by);
        }
  const SiteLayout& chosen = exact.best->layout;
  const Advice after = advise(placed_scenario(inventory, chosen), options.searches).or_throw();
  const Score sequential = score_of(inventory, chosen, after.best().makespan, options);
  EXPECT_LE(best, sequential) << "than the other ideas after the sites";
  better += best < sequential ? 1 : 0;
}

TEST(SiteAdvice, IsNeverWorseThanASitePlannerByItself) {
  int better = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    expect_never_worse(seed, seed % 2 == 0 ? AdviceGoal::time : AdviceGoal::cost, better);
  EXPECT_GT(better, 2) << "sites and schedules together are worth more than one after the other";
}

// West and east hold a pipeline together, and middle two: with all at once there are three, of
// which the one over the WAN is as fast as an order of blocks lets it be.
TEST(SiteAdvice, ComparesWhatAnIterationTrains) {
  const Scenario scenario = test::sites_scenario(2, 4, {4, 2}, 20ms, Bandwidth{8388608e3}, 1);
  const GpuInventory inventory{scenario};
  const SiteAdviceOptions options = sites_by_moves(inventory, 50);
  EXPECT_EQ(score_of(inventory, {{{DatacenterId{0}, 2}}, 2, 1}, 20ms, options), 10'000'000);
  const SiteAdvice found = advise_sites(inventory, options).or_throw();
  expect_sound(inventory, found, options);
  const AdvisedPlace& best = found.places[at(found.advice.best().scenario)];
  ASSERT_EQ(best.layout.placement.size(), 1U) << "20 ms of WAN are longer than all blocks";
  EXPECT_EQ(best.layout.placement.front().datacenter, DatacenterId{0});
  EXPECT_EQ(best.layout.replicas(), 2);
}

// Four microbatches of 3 ms in each of two pipelines of one stage: nothing is idle.
TEST(SiteAdvice, BoundsEveryPlacement) {
  Scenario scenario = test::sites_scenario(1, 4, {2}, 1ms, Bandwidth{1e9}, 1);
  scenario.parallel.gradient_sync = GradientSync::none;
  scenario.datacenters[0].price = 3;
  const GpuInventory inventory{scenario};
  const SiteAdvice by_time = advise_sites(inventory, sites_by_moves(inventory, 10)).or_throw();
  EXPECT_EQ(by_time.bound, 6'000'000);
  EXPECT_EQ(by_time.advice.best().score, 6'000'000);
  const SiteAdvice by_cost =
      advise_sites(inventory, sites_by_moves(inventory, 10, AdviceGoal::cost)).or_throw();
  EXPECT_EQ(by_cost.bound, 10'000) << "12 ms at 3 $ an hour";
  EXPECT_EQ(by_cost.advice.best().score, 10'000);
}

// 10 $ an hour and 1 $: the dear site is taken by time alone. 5 F + B of 3 ms, two stages.
TEST(SiteAdvice, CountsMoneyWhereItIsAsked) {
  Scenario scenario = test::sites_scenario(2, 4, {2, 2}, 500ms, Bandwidth{8388608e3}, 1);
  scenario.datacenters[0].speed = 2;
  scenario.datacenters[0].price = 10;
  scenario.datacenters[1].price = 1;
  const GpuInventory inventory{scenario};
  const auto best = [&](AdviceGoal goal) {
    const SiteAdvice found =
        advise_sites(inventory, sites_by_moves(inventory, 50, goal)).or_throw();
    return found.places[at(found.advice.best().scenario)].layout.placement.front().datacenter;
  };
  EXPECT_EQ(best(AdviceGoal::time), DatacenterId{0});
  EXPECT_EQ(best(AdviceGoal::cost), DatacenterId{1});
  const SiteAdviceOptions by_cost = sites_by_moves(inventory, 50, AdviceGoal::cost);
  EXPECT_EQ(score_of(inventory, {{{DatacenterId{1}, 2}}, 1, 1}, 3600s, by_cost), 2'000'000'000)
      << "two GPUs at 1 $ an hour";
}

TEST(SiteAdvice, IsTheSameWhereMovesEndItsSearches) {
  const Scenario scenario = test::random_sites(4, 3);
  const GpuInventory inventory{scenario};
  SiteAdviceOptions options = sites_by_moves(inventory, 100);
  const SiteAdvice first = advise_sites(inventory, options).or_throw();
  options.searches.threads = 2;
  const SiteAdvice second = advise_sites(inventory, options).or_throw();
  ASSERT_EQ(first.advice.plans.size(), second.advice.plans.size());
  for (std::size_t i = 0; i < first.advice.plans.size(); ++i) {
    EXPECT_EQ(first.advice.plans[i].schedule, second.advice.plans[i].schedule);
    EXPECT_EQ(first.advice.plans[i].score, second.advice.plans[i].score);
  }
}

// The first plan that there is, told of before any search.
TEST(SiteAdvice, ThatIsStoppedHasTheBestSoFar) {
  const Scenario scenario = test::random_sites(4, 3);
  const GpuInventory inventory{scenario};
  SiteAdviceOptions options = sites_by_moves(inventory, 1'000'000'000'000);
  options.searches.stopped = [] { return true; };
  int told = 0;
  options.searches.after_step = [&](int, int, const AdvisedPlan&) { ++told; };
  const SiteAdvice found = advise_sites(inventory, options).or_throw();
  EXPECT_TRUE(found.advice.is_stopped);
  EXPECT_GE(told, 1);
  expect_sound(inventory, found, options);
}

TEST(SiteAdvice, SaysWhyThereIsNone) {
  const Scenario few = test::sites_scenario(4, 2, {1, 2}, 1ms, Bandwidth{1e9}, 1);
  const GpuInventory inventory{few};
  const Result<SiteAdvice> none = advise_sites(inventory, sites_by_moves(inventory, 1));
  ASSERT_FALSE(none);
  EXPECT_THAT(none.refusal().reason, HasSubstr("no plan can be made"));
  const Scenario one = test::sites_scenario(2, 2, {2}, 1ms, Bandwidth{1e9}, 1);
  const GpuInventory alone{one};
  const SiteAdvice found = advise_sites(alone, sites_by_moves(alone, 10)).or_throw();
  for (const UnusedIdea& each : found.advice.unused)
    if (each.idea == Idea::sites) {
      EXPECT_EQ(each.reason, "there is one datacenter");
    }
}

}  // namespace
}  // namespace longhaul::planner
