// Searches by worth, with bubbles of which each `kUnit` of idle time is sold: no prompts are known
// here. With prompts: tests/cli/prefill/best_by_value_test.cpp.
#include "planner/search/worth.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/rows.hpp"
#include "planner/collectives/grain.hpp"
#include "planner/random_schedules.hpp"
#include "planner/search/makespan.hpp"
#include "planner/search/replica_orders.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/validity/validity.hpp"
#include "sim/simulate.hpp"

namespace longhaul::planner {
namespace {

constexpr std::int64_t kUnit = 70;  // ns

struct Idle {
  std::int64_t start = 0, end = 0;
};

/// Between blocks and at both ends of an iteration, of all ranks.
std::vector<Idle> idle_times(const Plan& plan, const OpTimes& times, std::int64_t period) {
  Timeline timeline;
  plan::append_rows(timeline, plan, times, 0);
  std::vector<std::vector<Idle>> busy;
  for (const TimelineRow& row : timeline.rows) {
    if (!is_compute(row.kind)) continue;
    if (at(row.rank) >= busy.size()) busy.resize(at(row.rank) + 1);
    busy[at(row.rank)].push_back({row.start_ns, row.end_ns});
  }
  std::vector<Idle> idle;
  for (auto& blocks : busy) {
    std::ranges::sort(blocks, {}, [](const Idle& block) {
      return std::pair{block.start, block.end};
    });
    std::int64_t until = 0;
    for (const Idle& block : blocks) {
      if (block.start > until) idle.push_back({until, block.start});
      until = std::max(until, block.end);
    }
    if (period > until) idle.push_back({until, period});
  }
  return idle;
}

/// Iterations, and whole units of idle times at `price` iterations each; the wait is from each of
/// 16 instants to the next idle time that holds a unit, on any rank.
WorthOf worth_by_units(const Scenario& scenario, Arrangement arrangement, double price) {
  return [&scenario, arrangement, price](const Schedule& schedule,
                                         Duration fastest) -> std::optional<Worth> {
    const auto reported = try_lower_reported(schedule, scenario, arrangement);
    if (!reported) return std::nullopt;
    const auto times = sim::try_simulate(reported->plan);
    if (!times) return std::nullopt;
    std::int64_t period = 0, units = 0, wait = 0;
    for (const OpTime& time : *times) period = std::max(period, time.end.count());
    const std::vector<Idle> idle = idle_times(reported->plan, *times, period);
    for (const Idle& each : idle) units += (each.end - each.start) / kUnit;
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::int64_t arrival = i * period / 16;
      std::int64_t least = period;
      for (const Idle& each : idle)
        if (const auto start = std::max(arrival, each.start); start + kUnit <= each.end)
          least = std::min(least, start - arrival);
      wait += least;
    }
    const double of_iteration = static_cast<double>(fastest.count());
    return Worth{of_iteration * (1 + price * static_cast<double>(units)) /
                     static_cast<double>(std::max<std::int64_t>(1, period)),
                 Duration{wait}, Duration{period}};
  };
}

SearchOptions worth_moves(std::int64_t count) {
  SearchOptions options;
  options.moves = count;
  return options;
}

bool are_equal(const Worth& one, const Worth& other) {
  return one.per_second == other.per_second && one.wait == other.wait && one.period == other.period;
}

TEST(Worthiest, IsNeverWorthLessThanWhatItCouldChoose) {
  int found = 0, improved = 0, differ = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random{seed};
    const Scenario scenario = test::random_scenario(random);
    SearchOptions options = worth_moves(4'000);
    options.arrangement = static_cast<Arrangement>(random.between(0, 1));
    const double price = 0.02 * static_cast<double>(random.between(0, 5));
    const WorthOf worth_of = worth_by_units(scenario, options.arrangement, price);
    const auto best = try_find_worthiest(scenario, options, worth_of);
    const auto fastest = try_find_best(scenario, options);
    ASSERT_EQ(static_cast<bool>(best), static_cast<bool>(fastest)) << "seed " << seed;
    if (!best) continue;
    ++found;
    const auto violation = schedule::first_violation(best->schedule, scenario);
    ASSERT_FALSE(violation) << "seed " << seed << ": " << violation->text;
    EXPECT_EQ(best->schedule.name, "best");
    Duration least = Duration::max();
    bool is_improved = true;
    ASSERT_GE(best->candidates.size(), fastest->candidates.fitting.size() + 1);
    for (const WorthCandidate& candidate : best->candidates) {
      EXPECT_FALSE(candidate.worth.is_better_than(best->worth))
          << candidate.schedule.name << " seed " << seed;
      is_improved = is_improved && best->worth.is_better_than(candidate.worth);
      least = std::min(least, candidate.worth.period);
    }
    EXPECT_EQ(best->candidates.back().worth.period, fastest->makespan);
    EXPECT_TRUE(are_equal(best->worth, worth_of(best->schedule, least).value())) << seed;
    EXPECT_EQ(best->worth.period, makespan_of(best->schedule, scenario, options.arrangement));
    improved += is_improved ? 1 : 0;
    differ += best->schedule.replicas_share_rows() ? 0 : 1;
  }
  EXPECT_GT(found, 30);
  EXPECT_GT(improved, 12);
  EXPECT_GT(differ, 3);
}

TEST(Worthiest, JudgesAllCandidatesHoweverLittleTimeThereIs) {
  Random random{5};
  const Scenario scenario = test::random_scenario(random);
  const auto names = [&](const SearchOptions& options) {
    const WorthOf worth_of = worth_by_units(scenario, options.arrangement, 0.05);
    std::vector<std::string> all;
    for (const auto& each : try_find_worthiest(scenario, options, worth_of).or_throw().candidates)
      all.push_back(each.schedule.name);
    return all;
  };
  SearchOptions at_once;
  at_once.time = Duration::zero();
  EXPECT_THAT(names(at_once), ::testing::ElementsAreArray(names(worth_moves(0))));
}

// Nothing is worth anything but orders that leave room: others are no answers, and no faults.
TEST(Worthiest, SearchesWhereTrainingIsWorthNothing) {
  Random random{5};
  const Scenario scenario = test::random_scenario(random);
  const WorthOf by_units = worth_by_units(scenario, Arrangement::decoupled, 1);
  const WorthOf units_alone = [&](const Schedule& schedule, Duration fastest) {
    auto worth = by_units(schedule, fastest);
    if (worth) {
      const auto period = static_cast<double>(worth->period.count());
      worth->per_second -= static_cast<double>(fastest.count()) / period;
      if (worth->per_second < 1e-9) worth->per_second = 0;
    }
    return worth;
  };
  const WorthResult found =
      try_find_worthiest(scenario, worth_moves(4'000), units_alone).or_throw();
  for (const WorthCandidate& candidate : found.candidates)
    EXPECT_FALSE(candidate.worth.is_better_than(found.worth)) << candidate.schedule.name;
}

TEST(Worthiest, IsTheSameForAnyNumberOfThreadsWhenMovesBoundIt) {
  for (const std::uint64_t seed : {3U, 8U, 21U}) {
    Random random{seed};
    Scenario scenario = test::random_scenario(random);
    scenario.memory.budget = 2;
    SearchOptions options = worth_moves(6'000);
    options.threads = 1;
    const WorthOf worth_of = worth_by_units(scenario, options.arrangement, 0.05);
    const WorthResult one = try_find_worthiest(scenario, options, worth_of).or_throw();
    for (const int threads : {2, 3}) {
      options.threads = threads;
      const WorthResult several = try_find_worthiest(scenario, options, worth_of).or_throw();
      EXPECT_EQ(several.schedule, one.schedule) << threads;
      EXPECT_EQ(several.judged, one.judged);
      EXPECT_TRUE(are_equal(several.worth, one.worth));
    }
  }
}

// GPipe and 1F1B take 900 ns here, and are idle at other times (docs/prefill.md).
class TwoOrders : public ::testing::Test {
protected:
  TwoOrders() {
    scenario_.parallel.replicas = 2;
    scenario_.placement.assign(4, DatacenterId{0});
    scenario_.parallel.gradient_sync = GradientSync::none;
    scenario_.memory.budget = 2;
    scenario_.costs.backward.assign(2, Duration{200});
    gpipe_ = schedule::generate("gpipe", scenario_);
    one_f_one_b_ = schedule::generate("1f1b", scenario_);
  }
  [[nodiscard]] WorthCandidate judged(const Schedule& schedule) const {
    return {schedule, judge_(schedule).value()};
  }

  Scenario scenario_ = uniform_scenario(2, 2);
  Schedule gpipe_, one_f_one_b_;
  WorthOf worth_of_ = worth_by_units(scenario_, Arrangement::decoupled, 0);
  JudgeWorth judge_ = [this](const Schedule& schedule) {
    return worth_of_(schedule, Duration{900});
  };
};

TEST_F(TwoOrders, BubblesOfReplicasWithOtherOrdersOpenAtOtherTimes) {
  const WorthCandidate before = judged(gpipe_);
  const WorthCandidate after =
      stagger(before, {one_f_one_b_}, scenario_, judge_, 1, [] { return false; });
  EXPECT_EQ(after.worth.period, Duration{900});
  EXPECT_EQ(before.worth.period, Duration{900});
  EXPECT_LT(after.worth.wait, before.worth.wait);
  EXPECT_LT(after.worth.wait, judged(one_f_one_b_).worth.wait);
  const auto rows_of = [&](int replica) {
    return std::vector<std::vector<Block>>(after.schedule.rows.begin() + 2 * replica,
                                           after.schedule.rows.begin() + 2 * replica + 2);
  };
  EXPECT_EQ(rows_of(0), gpipe_.rows);
  EXPECT_EQ(rows_of(1), one_f_one_b_.rows);
}

TEST_F(TwoOrders, NoneIsGivenThatTakesLongerOrServesNoBetter) {
  Schedule slow = gpipe_;  // the second microbatch waits for the first one's backward pass
  std::swap(slow.rows[0][1], slow.rows[0][2]);
  std::swap(slow.rows[1][1], slow.rows[1][2]);
  ASSERT_GT(judged(slow).worth.period, Duration{900});
  const WorthCandidate start = judged(gpipe_);
  const auto never = [] { return false; };
  EXPECT_EQ(stagger(start, {slow}, scenario_, judge_, 1, never).schedule, gpipe_);
  EXPECT_EQ(stagger(start, {}, scenario_, judge_, 1, never).schedule, gpipe_);
  const auto slow_is_dear = [&](const Schedule& schedule) {
    Worth worth = judge_(schedule).value();
    worth.per_second = static_cast<double>(worth.period.count());
    return worth;
  };
  EXPECT_EQ(
      stagger({gpipe_, slow_is_dear(gpipe_)}, {slow}, scenario_, slow_is_dear, 1, never).schedule,
      gpipe_)
      << "worth more, but longer";
  const auto equal = [](const Schedule&) { return Worth{1, Duration{1}, Duration{900}}; };
  EXPECT_EQ(stagger({gpipe_, equal(gpipe_)}, {one_f_one_b_}, scenario_, equal, 1, never).schedule,
            gpipe_);
  EXPECT_EQ(stagger(start, {one_f_one_b_}, scenario_, judge_, 1, [] { return true; }).schedule,
            gpipe_)
      << "it was stopped before it began";
}

TEST_F(TwoOrders, RowsOfSharedOrStatedOrdersStay) {
  EXPECT_TRUE(may_stagger(gpipe_));
  EXPECT_FALSE(may_stagger(with_own_rows(gpipe_)));
  Schedule in_cells = gpipe_;
  in_cells.cell = 2;
  EXPECT_FALSE(may_stagger(in_cells));
  Schedule alone = gpipe_;
  alone.replicas = 1;
  EXPECT_FALSE(may_stagger(alone));
  EXPECT_EQ(with_own_rows(gpipe_).row(ReplicaId{1}, DeviceId{1})[0],
            gpipe_.row(ReplicaId{0}, DeviceId{1})[0]);
  EXPECT_EQ(makespan_of(with_own_rows(gpipe_), scenario_), makespan_of(gpipe_, scenario_));
}

// Candidates in the replicas of each other, links and sums of gradients as drawn.
TEST(Stagger, LeavesTheTimeOfTrainingAsItIs) {
  int differ = 0;
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    Random random{seed};
    Scenario scenario = test::random_scenario(random);
    scenario.memory.budget = 2;
    const WorthOf worth_of = worth_by_units(scenario, Arrangement::decoupled, 0.05);
    const Candidates candidates = find_candidates(scenario, Arrangement::decoupled);
    if (candidates.fitting.empty()) continue;
    const Schedule& first = candidates.fitting.front().schedule;
    if (!may_stagger(first)) continue;
    std::vector<Schedule> orders;
    for (const Candidate& other : candidates.fitting)
      if (may_stagger(other.schedule) && other.schedule.copies == first.copies &&
          other.schedule.device_of_chunk == first.device_of_chunk)
        orders.push_back(other.schedule);
    const JudgeWorth judge = [&](const Schedule& schedule) {
      return worth_of(schedule, candidates.fitting.front().makespan);
    };
    const WorthCandidate start{first, judge(first).value()};
    const auto never = [] { return false; };
    const WorthCandidate after = stagger(start, orders, scenario, judge, 1, never);
    EXPECT_EQ(makespan_of(after.schedule, scenario), candidates.fitting.front().makespan) << seed;
    EXPECT_FALSE(start.worth.is_better_than(after.worth)) << seed;
    EXPECT_FALSE(schedule::first_violation(after.schedule, scenario)) << seed;
    EXPECT_EQ(stagger(start, orders, scenario, judge, 3, never).schedule, after.schedule) << seed;
    if (after.schedule == first) continue;
    EXPECT_TRUE(after.worth.is_better_than(start.worth)) << seed;
    ++differ;
  }
  EXPECT_GT(differ, 2);
}

TEST(Worthiest, RefusesReplicasThatDiffer) {
  Scenario scenario = uniform_scenario(2, 2);
  scenario.parallel.replicas = 2;
  scenario.placement.assign(4, DatacenterId{0});
  scenario.parallel.replica_microbatches = {2, 1};
  const auto refused = try_find_worthiest(scenario, worth_moves(0),
                                          worth_by_units(scenario, Arrangement::decoupled, 1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.refusal().reason.find("equal costs"), std::string::npos);
}

}  // namespace
}  // namespace longhaul::planner
