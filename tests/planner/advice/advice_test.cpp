#include "planner/advice/advice.hpp"

#include <algorithm>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "collective/overlap/overlaps.hpp"
#include "planner/advice/advice_by_moves.hpp"
#include "planner/advice/idea_pool.hpp"
#include "planner/cell_scenarios.hpp"
#include "planner/overlap/evaluate_overlap.hpp"
#include "planner/random_schedules.hpp"
#include "planner/search/makespan.hpp"
#include "planner/wan_sharing/share_wan.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/validity/validity.hpp"
#include "support/shipped.hpp"

namespace longhaul::planner {
namespace {

Scenario shipped(const char* name, const std::vector<std::string>& set = {}) {
  return scenario::load_scenario(
      testing::in_checkout(std::string{"benchmarks/scenarios/"} + name + ".toml"), set);
}

/// What holds of any advice: runnable plans, best first; parts that add up to the whole.
void expect_sound(const Advice& advice, const Scenario& scenario) {
  ASSERT_FALSE(advice.plans.empty());
  for (std::size_t i = 0; i < advice.plans.size(); ++i) {
    const AdvisedPlan& plan = advice.plans[i];
    EXPECT_FALSE(schedule::first_violation(plan.schedule, scenario)) << plan.schedule.name;
    EXPECT_GE(plan.makespan, plan.bound.lower_bound) << plan.schedule.name;
    EXPECT_EQ(has(plan.ideas, Idea::overlap), !plan.overlap.empty());
    if (plan.overlap.empty()) {
      EXPECT_EQ(plan.makespan, makespan_of(plan.schedule, scenario));
    }
    if (i > 0) {
      EXPECT_GE(plan.makespan, advice.plans[i - 1].makespan);
    }
    for (std::size_t other = 0; other < i; ++other)
      EXPECT_FALSE(is_within(advice.plans[other].ideas, plan.ideas) &&
                   advice.plans[other].makespan <= plan.makespan)
          << "it needs more ideas and is no faster";
  }
  if (!advice.baseline) return;
  Score gained = 0;
  for (const IdeaValue& each : advice.waterfall) {
    EXPECT_GE(each.alone, 0);
    EXPECT_GE(each.removed, 0);
    EXPECT_GE(each.added, 0);
    gained += each.added;
  }
  EXPECT_EQ(gained, *advice.baseline - advice.best().makespan.count());
}

TEST(Advise, IsNeverSlowerThanAPlannerByItself) {
  int with_order = 0;
  int with_turns = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Random random{seed};
    const Scenario scenario =
        seed % 2 == 0 ? test::random_cells(random) : test::random_scenario(random);
    const AdviceOptions options = by_moves(200);
    const Result<Advice> advice = advise(scenario, options);
    SearchOptions search;
    search.moves = options.moves;
    search.threads = 1;
    const Result<SearchResult> best = try_find_best(scenario, search);
    ASSERT_EQ(static_cast<bool>(advice), static_cast<bool>(best));
    if (!advice) continue;
    expect_sound(*advice, scenario);
    EXPECT_LE(advice->best().makespan, best->makespan);
    for (const Candidate& each : best->candidates.fitting)
      EXPECT_LE(advice->best().makespan, each.makespan) << each.schedule.name;
    const Result<SearchResult> shared = find_shared_best(scenario, search);
    if (scenario.parallel.cell > 1 && shared) {
      EXPECT_LE(advice->best().makespan, shared->makespan);
    }
    with_order += has(advice->best().ideas, Idea::order) ? 1 : 0;
    with_turns += has(advice->best().ideas, Idea::turns) ? 1 : 0;
  }
  EXPECT_GT(with_order, 10);
  EXPECT_GT(with_turns, 3);
}

TEST(Advise, IsNeverSlowerThanAnOverlapOfTheFastestStaticSchedule) {
  const Scenario scenario =
      shipped("dp-2dc", {"parallel.microbatches=4", "parallel.gradient_sync=all-reduce"});
  const Advice advice = advise(scenario, by_moves(200)).or_throw();
  expect_sound(advice, scenario);
  const auto fixed =
      std::ranges::find_if(advice.plans, [](const AdvisedPlan& plan) { return plan.ideas.none(); });
  ASSERT_NE(fixed, advice.plans.end());
  int compared = 0;
  for (const collective::Overlap& overlap : collective::overlaps()) {
    const Result<OverlapResult> result = evaluate_overlap(overlap, fixed->schedule, scenario);
    if (!result || !result->fits()) continue;
    ++compared;
    EXPECT_LE(advice.best().makespan, result->makespan) << overlap.name;
  }
  EXPECT_GT(compared, 3);
}

TEST(Advise, IsTheSameWhereMovesEndItsSearches) {
  const Scenario scenario = shipped("dp-2dc", {"parallel.microbatches=2"});
  const Advice first = advise(scenario, by_moves(300)).or_throw();
  const Advice second = advise(scenario, by_moves(300)).or_throw();
  ASSERT_EQ(first.plans.size(), second.plans.size());
  for (std::size_t i = 0; i < first.plans.size(); ++i) {
    EXPECT_EQ(first.plans[i].schedule, second.plans[i].schedule);
    EXPECT_EQ(first.plans[i].overlap, second.plans[i].overlap);
    EXPECT_EQ(first.plans[i].makespan, second.plans[i].makespan);
  }
}

// What was found so far, and no search that takes long.
TEST(Advise, ThatIsStoppedHasTheBestSoFar) {
  const Scenario scenario = shipped("dp-2dc");
  AdviceOptions options = by_moves(1'000'000'000'000);
  options.stopped = [] { return true; };
  const Advice advice = advise(scenario, options).or_throw();
  EXPECT_TRUE(advice.is_stopped);
  expect_sound(advice, scenario);
}

// Sums inside a site hide beside blocks while pipelines take turns between sites.
TEST(Advise, CombinesTurnsWithOverlaps) {
  const Scenario scenario = shipped("three-sites", {"parallel.microbatches=4"});
  const Advice advice = advise(scenario, by_moves(50)).or_throw();
  expect_sound(advice, scenario);
  const auto both = std::ranges::find_if(advice.plans, [](const AdvisedPlan& plan) {
    return has(plan.ideas, Idea::turns) && has(plan.ideas, Idea::overlap);
  });
  ASSERT_NE(both, advice.plans.end());
  const collective::Overlap& overlap = *collective::parse_overlaps(both->overlap).front();
  constexpr std::size_t kEvaluations = 200;  // as far as advice by moves searches one
  const Result<OverlapResult> again =
      evaluate_overlap(overlap, both->schedule, scenario, Arrangement::decoupled, {},
                       [](std::size_t evaluated) { return evaluated >= kEvaluations; });
  ASSERT_TRUE(again);
  EXPECT_EQ(again->makespan, both->makespan);
}

// A schedule that is late alone is where an overlap begins that is in time.
TEST(Advise, StartsFromWhatIsLateAlone) {
  const Scenario scenario = shipped("three-sites", {"parallel.microbatches=4"});
  AdviceOptions options = by_moves(50);
  options.keeps_all = true;
  const Advice free = advise(scenario, options).or_throw();
  const AdvisedPlan& best = free.best();
  Duration alone = Duration::max();
  for (const AdvisedPlan& plan : free.plans)
    if (plan.overlap.empty()) alone = std::min(alone, plan.makespan);
  ASSERT_LT(best.makespan, alone) << "an overlap is worth something";
  options.longest = best.makespan + (alone - best.makespan) / 2;
  const Advice in_time = advise(scenario, options).or_throw();
  EXPECT_EQ(in_time.best().makespan, best.makespan);
  EXPECT_EQ(in_time.best().schedule, best.schedule);
  EXPECT_FALSE(in_time.baseline) << "without any idea none is in time";
  for (const AdvisedPlan& plan : in_time.all) EXPECT_LE(plan.makespan, *options.longest);
  options.longest = best.makespan - Duration{1};
  const Result<Advice> none = advise(scenario, options);
  ASSERT_FALSE(none);
  EXPECT_THAT(none.refusal().reason, ::testing::HasSubstr("no plan is within the deadline"));
}

TEST(IdeaPool, TellsLatePlansApart) {
  IdeaPool pool;
  const auto add = [&](int scenario, const IdeaSet& ideas, Score score, int late_by) {
    AdvisedPlan plan;
    plan.scenario = scenario;
    plan.ideas = ideas;
    plan.score = score;
    plan.late_by = Duration{late_by};
    pool.add(std::move(plan));
  };
  add(0, {}, 100, 0);
  add(1, only(Idea::order), 50, 7);
  add(1, only(Idea::order), 60, 3);
  EXPECT_EQ(pool.best()->score, 100);
  EXPECT_LT(pool.standing_of(0), pool.standing_of(1));
  EXPECT_EQ(pool.standing_of(1), (std::pair<Duration, Score>{3, 60}));
  EXPECT_LT(pool.standing_of(1), pool.standing_of(2)) << "which has no plan";
  EXPECT_EQ(pool.plans_in_time().size(), 1U);
  EXPECT_EQ(pool.fastest_of(1, only(Idea::order), 9).size(), 2U) << "they are starts";
  for (const UnusedIdea& each : pool.advice().unused)
    if (each.idea == Idea::order) {
      EXPECT_EQ(each.reason, "every plan with it ends after the deadline");
    }
}

TEST(IdeaPool, SaysWhichIdeasExcludeEachOther) {
  IdeaPool pool;
  const auto add = [&](const IdeaSet& ideas, Score score) {
    AdvisedPlan plan;
    plan.ideas = ideas;
    plan.score = score;
    pool.add(std::move(plan));
  };
  const auto reason_of = [&](Idea idea) -> std::string {
    for (const UnusedIdea& each : pool.advice().unused)
      if (each.idea == idea) return each.reason;
    return "used";
  };
  pool.exclude(Idea::turns, Idea::method, "links cannot do both");
  add({}, 100);
  add(only(Idea::turns), 100);
  add(only(Idea::method), 50);
  EXPECT_THAT(reason_of(Idea::turns), ::testing::HasSubstr("no turns on the WAN"))
      << "they bring nothing anyway";
  add(only(Idea::turns), 90);
  EXPECT_EQ(reason_of(Idea::turns), "it does not go with method: links cannot do both");
  EXPECT_EQ(reason_of(Idea::method), "used");
  add(only(Idea::turns) | only(Idea::method), 40);
  EXPECT_EQ(reason_of(Idea::turns), "used");
}

TEST(Advise, SaysWhyAnIdeaIsNotUsed) {
  Scenario scenario = uniform_scenario(2, 4);
  const Advice advice = advise(scenario, by_moves(100)).or_throw();
  const auto reason_of = [&](Idea idea) -> std::string {
    for (const UnusedIdea& each : advice.unused)
      if (each.idea == idea) return each.reason;
    return "used";
  };
  EXPECT_THAT(reason_of(Idea::turns), ::testing::HasSubstr("parallel.cell is 1"));
  EXPECT_THAT(reason_of(Idea::overlap), ::testing::HasSubstr("which operators"));
}

}  // namespace
}  // namespace longhaul::planner
