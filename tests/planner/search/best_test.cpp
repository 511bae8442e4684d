#include "planner/search/best.hpp"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/random_schedules.hpp"
#include "planner/search/makespan.hpp"
#include "planner/search/portfolio.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity/validity.hpp"
#include "support/shipped.hpp"

namespace longhaul::planner {
namespace {

SearchOptions moves(std::int64_t count, std::vector<schedule::Placement> placements = {}) {
  SearchOptions options;
  options.moves = count;
  options.placements = std::move(placements);
  return options;
}

/// The published tables' setting: F = D = W = 100, two datacenters, no transfer time.
Scenario two_datacenters(int stages, int microbatches, std::int64_t latency, double budget = 1) {
  Scenario scenario =
      spread(uniform_scenario(stages, microbatches), 2, Duration{latency}, Duration{});
  scenario.memory.budget = budget;
  return scenario;
}

std::int64_t best_of(const Scenario& scenario, std::int64_t count,
                     std::vector<schedule::Placement> placements = {}) {
  return find_best(scenario, moves(count, std::move(placements))).makespan.count();
}

// Optima that a solver has proven, P = 4, M = 8, UD.
TEST(Best, ReachesTheProvenOptima) {
  const std::int64_t optima[][2] = {{0, 2700}, {50, 2900}, {100, 3100}, {200, 3500}, {400, 4300}};
  for (const auto& [latency, optimum] : optima) {
    EXPECT_EQ(
        best_of(two_datacenters(4, 8, latency), 200'000, {schedule::Placement::unidirectional}),
        optimum)
        << latency;
  }
}

struct Published {
  std::int64_t latency, cross_ud, with_twice_the_memory, cross_wave, best_static;
};
constexpr Published kPublished[] = {{0, 2700, 2700, 2600, 2550},
                                    {50, 3000, 2750, 2750, 2800},
                                    {100, 3100, 2800, 3000, 3100},
                                    {200, 3500, 2900, 3650, 3700},
                                    {400, 4300, 3100, 5150, 4100}};

TEST(Best, ReachesOrBeatsEveryPublishedValue) {
  for (const Published& row : kPublished) {
    const Scenario scenario = two_datacenters(4, 8, row.latency);
    const Scenario twice = two_datacenters(4, 8, row.latency, 2);
    const std::vector ud{schedule::Placement::unidirectional};
    EXPECT_LE(best_of(scenario, 100'000, ud), row.cross_ud) << row.latency;
    EXPECT_LE(best_of(twice, 100'000, ud), row.with_twice_the_memory) << row.latency;
    EXPECT_LE(best_of(scenario, 100'000, {schedule::Placement::wave}), row.cross_wave)
        << row.latency;
    // GPipe, the best static one at 400, holds 8 activations: twice the budget.
    EXPECT_LE(best_of(twice, 100'000), row.best_static) << row.latency;
  }
  EXPECT_LE(best_of(two_datacenters(8, 16, 400), 100'000, {schedule::Placement::unidirectional}),
            7100);
  EXPECT_LE(best_of(two_datacenters(8, 16, 400, 2), 100'000, {schedule::Placement::unidirectional}),
            5900);
  EXPECT_LE(best_of(two_datacenters(8, 16, 400), 100'000, {schedule::Placement::wave}), 7450);
}

// Two of CrossPipe's cells, with B cheaper than D and W: CrossPipe's mixed column within 1%.
TEST(Best, IsWithinOnePercentOfTheBestKnownOrders) {
  const auto cell = [](const char* ratio, std::vector<std::string> more) {
    more.push_back(fmt::format("link.latency_ratio={}", ratio));
    more.push_back(fmt::format("link.transfer_ratio={}", ratio));
    return scenario::load_scenario(testing::in_checkout("benchmarks/scenarios/m70-2dc.toml"), more);
  };
  EXPECT_LE(find_best(cell("2", {}), moves(2'000'000)).makespan, 16 * 1.01 * 161.9ms);
  EXPECT_LE(find_best(cell("0", {"parallel.microbatches=32", "memory.budget=2"}), moves(2'000'000))
                .makespan,
            32 * 1.01 * 109.6ms);
}

TEST(Best, IsNeverWorseThanWhatItCouldChooseAndAlwaysWithinTheBudget) {
  int improved = 0;
  int found = 0;
  for (std::uint64_t seed = 1; seed <= 180; ++seed) {
    Random random{seed};
    const Scenario scenario = test::random_scenario(random);
    SearchOptions options = moves(4000);
    options.arrangement = static_cast<Arrangement>(random.between(0, 1));
    SearchResult best;
    try {
      best = find_best(scenario, options);
    } catch (const Error& error) {
      EXPECT_TRUE(find_candidates(scenario, options.arrangement).fitting.empty()) << error.what();
      continue;
    }
    ++found;
    const auto violation = schedule::first_violation(best.schedule, scenario);
    ASSERT_FALSE(violation) << "seed " << seed << ": " << violation->text;
    EXPECT_EQ(best.schedule.name, "best");
    EXPECT_EQ(best.makespan, makespan_of(best.schedule, scenario, options.arrangement));
    EXPECT_GE(best.makespan, best.bound.lower_bound) << "seed " << seed;
    for (const Candidate& candidate : best.candidates.fitting)
      EXPECT_LE(best.makespan, candidate.makespan) << candidate.schedule.name << " seed " << seed;
    if (best.candidates.fitting.empty() || best.makespan < best.candidates.fitting.front().makespan)
      ++improved;
  }
  EXPECT_GT(found, 150);
  EXPECT_GT(improved, 60);
}

std::vector<std::string> names_of(const std::vector<RejectedCandidate>& rejected) {
  std::vector<std::string> names;
  for (const RejectedCandidate& one : rejected) names.push_back(one.schedule);
  return names;
}

// One that fits is needed all the same: gpipe comes first in the registry, but knows no links.
TEST(FindCandidates, LeavesOutWhatIsLeftOnceThereIsEnough) {
  const Scenario scenario = two_datacenters(4, 8, 100);
  const std::vector ud{schedule::Placement::unidirectional};
  int asked = 0;
  const Candidates few =
      find_candidates(scenario, Arrangement::decoupled, ud, [&] { return ++asked > 1; });
  ASSERT_EQ(few.fitting.size(), 2U);
  EXPECT_EQ(few.fitting[0].schedule.name, "cross-ud");
  EXPECT_EQ(few.fitting[1].schedule.name, "cross-ud-sub");
  EXPECT_THAT(names_of(few.rejected),
              ::testing::ElementsAre("gpipe", "1f1b", "zb-h1", "zb-h2", "varuna", "varuna-fill",
                                     "atlas", "atlas-timed", "atlas-even"));
  EXPECT_THAT(few.rejected.front().reason, ::testing::HasSubstr("Give the search more time"));
  EXPECT_TRUE(std::ranges::all_of(few.rejected, &RejectedCandidate::unseen));
}

TEST(FindCandidates, AreInTheOrderOfTheRegistryWhereTheyTakeEqualTimes) {
  const Candidates all = find_candidates(uniform_scenario(1, 3), Arrangement::decoupled);
  std::vector<const schedule::Generator*> entries;
  for (const Candidate& candidate : all.fitting) {
    ASSERT_EQ(candidate.makespan, all.fitting.front().makespan) << candidate.schedule.name;
    entries.push_back(schedule::find_generator(candidate.schedule.name));
  }
  EXPECT_GT(entries.size(), 5U);
  EXPECT_TRUE(std::ranges::is_sorted(entries));
}

TEST(Best, IsTheSameForAnyNumberOfThreadsWhenMovesBoundIt) {
  const Scenario scenario = two_datacenters(4, 8, 130);
  SearchOptions options = moves(60'000);
  options.threads = 1;
  const SearchResult one = find_best(scenario, options);
  for (const int threads : {2, 3}) {
    options.threads = threads;
    const SearchResult several = find_best(scenario, options);
    EXPECT_EQ(several.schedule, one.schedule) << threads;
    EXPECT_EQ(several.moves, one.moves);
    EXPECT_EQ(several.accepted, one.accepted);
  }
  options.seed = 2;
  EXPECT_NE(find_best(scenario, options).accepted, one.accepted);
}

// A minute is allowed: stopped at once it has no move, and what it could choose from.
TEST(Best, EndsWithTheBestSoFarWhereItIsStopped) {
  const Scenario scenario = two_datacenters(4, 8, 100);
  SearchOptions options;
  options.time = std::chrono::seconds{60};
  options.stopped = [] { return true; };
  const SearchResult stopped = find_best(scenario, options);
  EXPECT_EQ(stopped.moves, 0);
  EXPECT_EQ(stopped.makespan, find_best(scenario, moves(0)).makespan);
  int asked = 0;
  options.stopped = [&] { return ++asked > 200; };
  const SearchResult later = find_best(scenario, options);
  EXPECT_GT(later.moves, 0);
  EXPECT_LE(later.makespan, stopped.makespan);
  EXPECT_LT(asked, 210) << "once more in each round at most";
}

TEST(Best, StaysOnThePlacementsThatItMayUse) {
  const Scenario scenario = two_datacenters(4, 8, 0);
  EXPECT_EQ(find_best(scenario, moves(3000, {schedule::Placement::unidirectional})).schedule.chunks,
            4);
  const SearchResult wave = find_best(scenario, moves(3000, {schedule::Placement::wave}));
  EXPECT_EQ(numbers(wave.schedule.device_of_chunk.items()), (std::vector{0, 1, 2, 3, 3, 2, 1, 0}));
}

/// The words of the error after "Set memory.budget to"; empty where there is no error.
std::string named_budget(const Scenario& scenario,
                         const std::vector<schedule::Placement>& placements = {}) {
  try {
    static_cast<void>(find_best(scenario, moves(100, placements)));
  } catch (const Error& error) {
    const std::string text = error.what();
    const std::string before = "Set memory.budget to ";
    const auto at = text.find(before);
    EXPECT_NE(at, text.npos) << text;
    if (at == text.npos) return text;
    return text.substr(at + before.size(), text.find(" or more") - at - before.size());
  }
  return "";
}

// min(P, M): one microbatch at a time needs the inverse of it, rounded up to millionths.
TEST(Best, NamesTheSmallestBudget) {
  const std::vector ud{
      schedule::Placement::unidirectional};  // chunks elsewhere may add by rounding
  const std::pair<int, std::string> smallest[] = {
      {2, "0.5"}, {3, "0.333334"}, {4, "0.25"}, {6, "0.166667"}, {7, "0.142858"}};
  for (const auto& [stages, budget] : smallest) {
    Scenario scenario = two_datacenters(stages, 8, 100, 0.01);
    EXPECT_EQ(named_budget(scenario, ud), budget);
    scenario.memory.budget = std::stod(budget);
    EXPECT_FALSE(schedule::first_violation(find_best(scenario, moves(100, ud)).schedule, scenario))
        << stages;
    scenario.memory.budget -= 5e-6;
    EXPECT_EQ(named_budget(scenario, ud), budget) << "a little less does not do";
  }
}

TEST(Best, NamesABudgetThatWorksOnRandomScenarios) {
  int named = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    Random random{seed};
    Scenario scenario = test::random_scenario(random);
    scenario.memory.budget = 0.01;
    const std::string budget = named_budget(scenario);
    if (budget.empty()) continue;
    ++named;
    scenario.memory.budget = std::stod(budget);
    EXPECT_EQ(named_budget(scenario), "") << "seed " << seed;
  }
  EXPECT_GT(named, 40);
}

TEST(Best, FusesWhereABackwardInOneIsCheaper) {
  Scenario scenario = two_datacenters(2, 8, 0);
  for (Duration& backward : scenario.costs.backward) backward = Duration{150};
  const SearchResult best =
      find_best(scenario, moves(100'000, {schedule::Placement::unidirectional}));
  int fused = 0;
  for (const auto& row : best.schedule.rows)
    fused += static_cast<int>(std::ranges::count(row, BlockKind::B, &Block::kind));
  EXPECT_GT(fused, 4);
  // The bottleneck alone: 8 F and 8 B of one device after one F, or before one B.
  EXPECT_LE(best.makespan.count(), 8 * 250 + 300);
}

// ZeRO-1: gathers before the first F of a chunk, scatters after its last W, on a lane of their
// own.
TEST(Best, PlacesDataParallelCommunication) {
  Scenario scenario = uniform_scenario(4, 8);
  scenario.parallel.replicas = 2;
  scenario = spread(scenario, 2, Duration{50}, Duration{100});
  for (int rank = 0; rank < scenario.ranks(); ++rank)
    scenario.placement[static_cast<std::size_t>(rank)] = DatacenterId{rank / 4};
  const SearchResult best =
      find_best(scenario, moves(200'000, {schedule::Placement::unidirectional}));
  Scenario alone = scenario;
  alone.parallel.gradient_sync = GradientSync::none;
  const SearchResult without =
      find_best(alone, moves(200'000, {schedule::Placement::unidirectional}));
  // The best without the communication is no better than the best made with it in mind.
  Schedule unaware = without.schedule;
  EXPECT_LE(best.makespan, makespan_of(unaware, scenario));
  EXPECT_GT(best.makespan, without.makespan);
}

TEST(Improve, IsNeverWorseAndKeepsTheLayout) {
  for (const char* name : {"gpipe", "1f1b", "zb-h1", "zbv", "interleaved-1f1b"}) {
    const Scenario scenario = two_datacenters(4, 8, 200, 2);
    const Schedule start = schedule::generate(name, scenario);
    const ImprovementResult improved = improve(start, scenario, moves(20'000));
    EXPECT_LE(improved.makespan, makespan_of(start, scenario)) << name;
    EXPECT_EQ(improved.makespan, makespan_of(improved.schedule, scenario)) << name;
    EXPECT_EQ(improved.schedule.device_of_chunk, start.device_of_chunk);
    EXPECT_EQ(improved.schedule.name, name);
    EXPECT_FALSE(schedule::first_violation(improved.schedule, scenario));
  }
}

TEST(Improve, RefusesAScheduleOverItsBudget) {
  const Scenario scenario = two_datacenters(4, 8, 0);
  EXPECT_THROW(
      static_cast<void>(improve(schedule::generate("gpipe", scenario), scenario, moves(100))),
      Error);
}

}  // namespace
}  // namespace longhaul::planner
