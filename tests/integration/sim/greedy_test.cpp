// Greedy schedules in the simulator: their own time is the simulator's, and they beat what
// CrossPipe measured of its greedy in every cell of its tables 5 and 6.
#include "schedule/generators/greedy/greedy.hpp"

#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "plan/lowering/lower.hpp"
#include "scenario/reader/load.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/greedy/row_times.hpp"
#include "schedule/random_scenario.hpp"
#include "sim/simulate.hpp"
#include "support/shipped.hpp"

namespace longhaul {
namespace {

Duration simulated(const Schedule& schedule, const Scenario& scenario) {
  Duration last{};
  for (const OpTime& time : sim::simulate(plan::lower(schedule, scenario)))
    last = std::max(last, time.end);
  return last;
}

struct Cell {
  int paper_case = 0;
  std::string latency_ratio, transfer_ratio;
  double seconds = 0;  ///< per microbatch
};

/// The rows of CrossUD in cases 1 and 3.
std::vector<Cell> cells_of_table(int table) {
  std::ifstream file{testing::in_checkout("results/papers/crosspipe-table") +
                     std::to_string(table) + ".csv"};
  std::vector<Cell> cells;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields{line};
    std::string paper_case, schedule, seconds;
    Cell cell;
    std::getline(fields, paper_case, ',');
    std::getline(fields, cell.latency_ratio, ',');
    std::getline(fields, cell.transfer_ratio, ',');
    std::getline(fields, schedule, ',');
    std::getline(fields, seconds, ',');
    if (schedule != "CrossUD" || (paper_case != "1" && paper_case != "3")) continue;
    cell.paper_case = std::stoi(paper_case);
    cell.seconds = std::stod(seconds);
    cells.push_back(cell);
  }
  return cells;
}

void expect_at_most_measured(int table, const std::string& scenario_file) {
  const std::vector<Cell> cells = cells_of_table(table);
  ASSERT_EQ(cells.size(), 10U);
  for (const Cell& cell : cells) {
    std::vector<std::string> overrides{"link.latency_ratio=" + cell.latency_ratio,
                                       "link.transfer_ratio=" + cell.transfer_ratio};
    if (cell.paper_case == 3) {
      overrides.emplace_back("parallel.microbatches=32");
      overrides.emplace_back("memory.budget=2");
    }
    const Scenario scenario = scenario::load_scenario(
        testing::in_checkout("benchmarks/scenarios/") + scenario_file, overrides);
    const Duration makespan = simulated(schedule::generate("cross-ud", scenario), scenario);
    EXPECT_LE(static_cast<double>(makespan.count()) * 1e-9 / scenario.parallel.microbatches,
              cell.seconds)
        << "case " << cell.paper_case << ", (" << cell.latency_ratio << ", " << cell.transfer_ratio
        << ")";
  }
}

TEST(CrossUd, IsAtMostWhatThePaperMeasuredInTwoDatacenters) {
  expect_at_most_measured(5, "m70-2dc.toml");
}

TEST(CrossUd, IsAtMostWhatThePaperMeasuredInFourDatacenters) {
  expect_at_most_measured(6, "m70-4dc.toml");
}

bool only_pairs(const Scenario& scenario) {
  return scenario.nodes.empty() && std::ranges::all_of(scenario.links, [](const Link& link) {
           return link.sharing == Sharing::pair;
         });
}

constexpr std::uint64_t kInstances = 400;

// With links per pair of devices a message's place in the queue follows from its sender's order
// alone, so that the two times agree to the nanosecond, data parallelism included.
TEST(Greedy, KnowsItsTimeWhereLinksArePrivate) {
  int compared = 0;
  for (const char* name : {"cross-ud", "cross-wave", "cross-loop"}) {
    for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
      const Scenario scenario = test::random_scenario(seed);
      if (!only_pairs(scenario)) continue;
      Schedule schedule = schedule::generate(name, scenario);
      for (std::vector<Block>& row : schedule.rows) row.clear();
      const schedule::families::GreedyProblem problem =
          schedule::families::greedy_problem(scenario, schedule, 1).or_throw();
      const Duration own = schedule::families::run_greedy(problem, {}, &schedule.rows);
      ASSERT_EQ(own, simulated(schedule, scenario)) << name << ", seed " << seed;
      ++compared;
    }
  }
  EXPECT_GT(compared, 300);
}

TEST(Greedy, RunsInTheSimulator) {
  for (const char* name : {"cross-ud", "cross-ud-sub", "cross-wave", "cross-loop"}) {
    for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
      const Scenario scenario = test::random_scenario(seed);
      ASSERT_GT(simulated(schedule::generate(name, scenario), scenario), Duration::zero())
          << name << ", seed " << seed;
    }
  }
}

// It tries whole blocks as well, and merging parts makes no F or D later.
TEST(CrossUdSub, IsNeverSlowerThanWholeBlocks) {
  int faster = 0;
  for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
    const Scenario scenario = test::random_scenario(seed);
    if (!only_pairs(scenario)) continue;
    const Duration whole = simulated(schedule::generate("cross-ud", scenario), scenario);
    const Duration parts = simulated(schedule::generate("cross-ud-sub", scenario), scenario);
    ASSERT_LE(parts, whole) << "seed " << seed;
    faster += parts < whole;
  }
  EXPECT_GT(faster, 5);
}

// Rows of any schedule of split backwards, not only the greedy's own.
TEST(RowTimes, AreTheSimulatorsWhereLinksArePrivate) {
  int compared = 0;
  for (const char* name : {"zb-h1", "zb-h2", "zbv", "zbv-auto", "cross-wave"}) {
    for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
      const Scenario scenario = test::random_scenario(seed);
      if (!only_pairs(scenario)) continue;
      const Schedule schedule = schedule::generate(name, scenario);
      const schedule::families::GreedyProblem problem =
          schedule::families::greedy_problem(scenario, schedule, 1).or_throw();
      ASSERT_EQ(schedule::families::time_of_rows(problem, schedule.rows),
                simulated(schedule, scenario))
          << name << ", seed " << seed;
      ++compared;
    }
  }
  EXPECT_GT(compared, 500);
}

// It is one of its starts, compared in the greedy's own time.
TEST(CrossWave, IsNeverLongerThanZbvAutoWhereLinksArePrivate) {
  int shorter = 0;
  for (std::uint64_t seed = 0; seed < kInstances; ++seed) {
    const Scenario scenario = test::random_scenario(seed);
    if (!only_pairs(scenario)) continue;
    const Duration blind = simulated(schedule::generate("zbv-auto", scenario), scenario);
    const Duration aware = simulated(schedule::generate("cross-wave", scenario), scenario);
    ASSERT_LE(aware, blind) << "seed " << seed;
    shorter += aware < blind ? 1 : 0;
  }
  EXPECT_GT(shorter, 50);
}

}  // namespace
}  // namespace longhaul
