// The solver's program is Python; here stands a shell script in its place, so that every way in
// which a child can end is tried without ortools. What the model itself finds: tests/scripts.
#include "planner/solver.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/makespan.hpp"
#include "planner/random_schedules.hpp"
#include "planner/solver_problem.hpp"
#include "schedule/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity.hpp"

namespace longhaul {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using Json = nlohmann::json;

Scenario far_apart() { return spread(uniform_scenario(4, 8), 2, Duration{400}, Duration::zero()); }

/// Stands for Python: a shell script that is called as `-m longhaul.solver PROBLEM ANSWER`.
class Solver : public testing::Test {
protected:
  Solver() : directory_{(fs::temp_directory_path() / "longhaul-fake-XXXXXX").string()} {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    options_.time_limit = std::chrono::milliseconds{1};
    options_.grace = std::chrono::seconds{100};
  }
  ~Solver() override {
    unsetenv("LONGHAUL_PYTHON");
    fs::remove_all(directory_);
  }

  void behave(const std::string& commands) {
    const fs::path script = fs::path{directory_} / "python";
    std::ofstream{script} << "#!/bin/sh\n" << commands << "\n";
    fs::permissions(script, fs::perms::owner_all);
    setenv("LONGHAUL_PYTHON", script.c_str(), 1);
  }
  /// Commands that hand the JSON over.
  std::string answering(const Json& answer) {
    const fs::path file = fs::path{directory_} / "prepared.json";
    std::ofstream{file} << answer;
    return "cp " + file.string() + " \"$4\"";
  }
  [[nodiscard]] Solved run_it() const {
    return solve(Placement::unidirectional, scenario_, start_, options_);
  }
  /// The error that solving ends with.
  [[nodiscard]] Error failure() const {
    try {
      (void)run_it();
    } catch (const Error& error) {
      return error;
    }
    return Error{"it did not fail", ExitCode::fine};
  }

  std::string directory_;
  Scenario scenario_ = far_apart();
  Schedule start_ = generate("zb-h1", scenario_);
  SolverOptions options_;
};

/// What the program would answer with the rows of a schedule.
Json answer_with(const Schedule& schedule, const SolverProblem& problem) {
  Json answer{{"status", "feasible"}, {"seconds", 1.5}, {"bound_ns", 4200}};
  answer["link_orders"] = Json::object();
  answer["fused"] = Json::array();
  for (const auto& row : schedule.rows) {
    Json indices = Json::array();
    for (const Block& block : row)
      indices.push_back(std::ranges::find(problem.blocks, block) - problem.blocks.begin());
    answer["rows"].push_back(indices);
  }
  return answer;
}

TEST_F(Solver, TakesTheBetterScheduleOfTheAnswer) {
  const Schedule better = generate("cross-ud", scenario_);
  behave(answering(answer_with(better, make_problem(scenario_, start_, options_))));
  const Solved solved = run_it();
  EXPECT_EQ(solved.status, "feasible");
  EXPECT_EQ(solved.makespan, 4300ns);
  EXPECT_EQ(solved.schedule.rows, better.rows);
  EXPECT_EQ(solved.schedule.name, "cross-ud-opt");
  EXPECT_EQ(solved.bound, 4300ns) << "ours is higher than the answer's 4200";
  EXPECT_DOUBLE_EQ(solved.seconds, 1.5);
  EXPECT_THAT(solved.holds_for, HasSubstr("ud placement, whole blocks, D and W apart"));
}

TEST_F(Solver, KeepsTheWarmStartWhereTheAnswerIsWorse) {
  const Schedule start = generate("cross-ud", scenario_);
  behave(answering(answer_with(start_, make_problem(scenario_, start, options_))));
  const Solved solved = solve(Placement::unidirectional, scenario_, start, options_);
  EXPECT_EQ(solved.status, "warm start");
  EXPECT_EQ(solved.makespan, 4300ns);
  EXPECT_EQ(solved.schedule.rows, start.rows);
}

TEST_F(Solver, KeepsTheWarmStartWhereNothingWasFound) {
  behave(answering({{"status", "unknown"}, {"seconds", 2.0}, {"bound_ns", 4299}}));
  const Solved solved = run_it();
  EXPECT_EQ(solved.status, "warm start");
  EXPECT_EQ(solved.makespan, 5700ns);
  EXPECT_EQ(solved.bound, 4300ns);
}

TEST_F(Solver, KillsAChildThatDoesNotEnd) {
  behave("exec sleep 1000");
  options_.grace = std::chrono::milliseconds{50};
  const Solved solved = run_it();
  EXPECT_EQ(solved.status, "warm start");
  EXPECT_EQ(solved.bound, 4300ns);
}

TEST_F(Solver, TakesWhatAKilledChildLeft) {
  const Schedule better = generate("cross-ud", scenario_);
  const std::string flag = directory_ + "/written";
  behave(answering(answer_with(better, make_problem(scenario_, start_, options_))) + " && touch " +
         flag + " && exec sleep 1000");
  options_.grace = std::chrono::milliseconds{50};
  Solved solved = run_it();
  while (!fs::exists(flag)) {  // a slow machine: the child was killed before it wrote
    options_.grace *= 2;
    solved = run_it();
  }
  EXPECT_EQ(solved.status, "feasible");
  EXPECT_EQ(solved.makespan, 4300ns);
}

TEST_F(Solver, PassesOnWhatBadInputSays) {
  behave("echo 'no OR-tools in it. Install it: pip install ortools' >&2; exit 2");
  const Error error = failure();
  EXPECT_EQ(error.code(), ExitCode::bad_input);
  EXPECT_STREQ(error.what(), "no OR-tools in it. Install it: pip install ortools");
}

TEST_F(Solver, SaysThatItCrashed) {
  behave("echo 'Traceback: oh' >&2; exit 5");
  EXPECT_EQ(failure().code(), ExitCode::run_failed);
  EXPECT_THAT(failure().what(), HasSubstr("Traceback: oh"));
  behave("kill -KILL $$");
  EXPECT_EQ(failure().code(), ExitCode::run_failed);
  EXPECT_THAT(failure().what(), HasSubstr("killed"));
}

TEST_F(Solver, RefusesAnAnswerThatItCannotRead) {
  for (const char* text : {"rubbish", "[1, 2]", "{}", "{\"status\": 7, \"seconds\": 1}"}) {
    behave(std::string{"printf '%s' '"} + text + "' > \"$4\"");
    EXPECT_EQ(failure().code(), ExitCode::run_failed) << text;
  }
}

TEST_F(Solver, RefusesAnAnswerThatCannotRun) {
  const SolverProblem problem = make_problem(scenario_, start_, options_);
  Json answer = answer_with(start_, problem);
  std::swap(answer["rows"][0][0], answer["rows"][0][20]);
  behave(answering(answer));
  EXPECT_THAT(failure().what(), HasSubstr("cannot run"));
  answer["rows"][0][0] = 100000;
  behave(answering(answer));
  EXPECT_THAT(failure().what(), HasSubstr("names a block that there is not"));
  EXPECT_EQ(failure().code(), ExitCode::run_failed);
}

TEST_F(Solver, SaysThatThereIsNoPython) {
  setenv("LONGHAUL_PYTHON", (directory_ + "/nowhere").c_str(), 1);
  EXPECT_EQ(failure().code(), ExitCode::bad_input);
  EXPECT_THAT(failure().what(), HasSubstr("LONGHAUL_PYTHON"));
}

/// Every constraint of the model holds for the times of the warm start.
void expect_feasible(const SolverProblem& problem, const std::string& where) {
  const Json& json = problem.json;
  const auto begin = [&](const Json& i) {
    return json["blocks"][i.get<std::size_t>()]["start_ns"].get<std::int64_t>();
  };
  std::map<std::size_t, std::int64_t> fused;  // length of a B, by its D; 0 by its W
  for (const Json& fusion : json["fusions"]) {
    if (!fusion["fused"]) continue;
    fused[fusion["gradient"]] = fusion["duration_ns"];
    fused[fusion["weight"]] = 0;
  }
  const auto end = [&](const Json& i) {
    if (fused.contains(i.get<std::size_t>())) return begin(i) + fused[i.get<std::size_t>()];
    return begin(i) + json["blocks"][i.get<std::size_t>()]["duration_ns"].get<std::int64_t>();
  };
  const std::int64_t makespan = json["start_makespan_ns"];
  EXPECT_LE(json["lower_bound_ns"].get<std::int64_t>(), makespan) << where;
  for (std::size_t i = 0; i < json["blocks"].size(); ++i) {
    const Json& block = json["blocks"][i];
    std::int64_t start = block["start_ns"];
    EXPECT_LE(block["head_ns"].get<std::int64_t>(), start) << where << block;
    // A tail of a W counts from its end: one that is fused has no length.
    if (block["kind"] == "W") start = end(i) - block["duration_ns"].get<std::int64_t>();
    EXPECT_LE(start + block["tail_ns"].get<std::int64_t>(), makespan) << where << block;
  }
  for (const Json& pair : json["after"]) EXPECT_LE(end(pair[0]), begin(pair[1])) << where << pair;
  for (const Json& message : json["messages"]) {
    const std::int64_t takes =
        message["transfer_ns"].get<std::int64_t>() + message["latency_ns"].get<std::int64_t>();
    EXPECT_LE(end(message["from"]) + takes, begin(message["to"])) << where << message;
  }
  std::map<std::pair<std::size_t, std::int64_t>, std::int64_t> change;  // by device and time
  for (const Json& held : json["held"]) {
    const std::size_t device = json["blocks"][held["from"].get<std::size_t>()]["device"];
    change[{device, begin(held["from"])}] += held["bytes"].get<std::int64_t>();
    change[{device, end(held["until"])}] -= held["bytes"].get<std::int64_t>();
  }
  std::map<std::size_t, std::int64_t> level;
  for (const auto& [when, bytes] : change) {
    level[when.first] += bytes;
    EXPECT_LE(level[when.first], json["memory_limit_bytes"].get<std::int64_t>()) << where;
  }
  for (const auto& [device, left] : level) EXPECT_EQ(left, 0) << where << device;
}

TEST(SolverProblem, HoldsTheWarmStartOfRandomInstances) {
  int held = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    Random random{seed};
    Scenario scenario = test::random_scenario(random);
    scenario.parallel.replicas = 1;
    scenario.placement.resize(static_cast<std::size_t>(scenario.parallel.stages));
    SolverOptions options;
    options.microbatch_order = random.between(0, 1) == 0;
    options.fuse = random.between(0, 1) == 0;
    for (const char* name : {"1f1b", "zb-h1", "cross-ud-sub", "cross-wave", "cross-bd"}) {
      Schedule start;
      try {
        start = generate(name, scenario);
      } catch (const Error&) {
        continue;  // not defined on this scenario
      }
      if (first_violation(start, scenario)) continue;
      const SolverProblem problem = make_problem(scenario, start, options);
      const auto violation = first_violation(problem.start, scenario);
      ASSERT_FALSE(violation.has_value()) << "seed " << seed << " " << name << violation->text;
      EXPECT_TRUE(problem.exact);
      EXPECT_EQ(problem.start_makespan, makespan_of(problem.start, scenario));
      expect_feasible(problem, fmt::format("seed {} {} ", seed, name));
      ++held;
    }
  }
  EXPECT_GT(held, 300);
}

// A B of 150 becomes D 100 and W 100; parts become whole; the second F of a chunk is microbatch 1.
TEST(SolverProblem, BringsSchedulesIntoTheModel) {
  Scenario scenario = uniform_scenario(1, 2);
  scenario.costs.backward[0] = 150ns;
  Schedule schedule = generate("gpipe", scenario);
  schedule.rows[0] = {{BlockKind::F, 0, 1, 0, 1}, {BlockKind::F, 0, 2, 0, 0},
                      {BlockKind::F, 1, 2, 0, 0}, {BlockKind::B, 0, 1, 0, 1},
                      {BlockKind::D, 0, 1, 0, 0}, {BlockKind::W, 0, 2, 0, 0},
                      {BlockKind::W, 1, 2, 0, 0}};
  SolverOptions split;
  split.fuse = false;
  const Schedule in_order = in_model(schedule, scenario, split);
  const std::vector<Block> expected{{BlockKind::F, 0, 1, 0, 0}, {BlockKind::F, 0, 1, 0, 1},
                                    {BlockKind::D, 0, 1, 0, 0}, {BlockKind::W, 0, 1, 0, 0},
                                    {BlockKind::D, 0, 1, 0, 1}, {BlockKind::W, 0, 1, 0, 1}};
  EXPECT_EQ(in_order.rows[0], expected);
  SolverOptions any = split;
  any.microbatch_order = false;
  EXPECT_EQ(in_model(schedule, scenario, any).rows[0][0].microbatch, 1);
  const Schedule fused = in_model(schedule, scenario, {});
  EXPECT_EQ(fused.rows[0][2], (Block{BlockKind::B, 0, 1, 0, 0}));
  EXPECT_EQ(fused.rows[0][4], (Block{BlockKind::W, 0, 1, 0, 1}));
}

TEST(SolverProblem, LeavesDataParallelCommunicationOutWhereAsked) {
  Scenario scenario = spread(uniform_scenario(2, 4), 2, Duration{100}, Duration::zero());
  scenario.parallel.replicas = 2;
  scenario = spread(scenario, 2, Duration{100}, Duration::zero());
  const Schedule start = generate("zb-h1", scenario);
  SolverOptions options;
  const SolverProblem with = make_problem(scenario, start, options);
  options.include_dp = false;
  const SolverProblem without = make_problem(scenario, start, options);
  EXPECT_EQ(with.json["collectives"].size(), 4U);  // a gather and a scatter for each stage
  EXPECT_EQ(without.json["collectives"].size(), 0U);
  EXPECT_LE(without.start_makespan, with.start_makespan);
}

}  // namespace
}  // namespace longhaul
