// The solver's program is Python; here stands a shell script in its place, so that every way in
// which a child can end is tried without ortools. Results of the model itself: tests/scripts.
#include "planner/solver/solver.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "planner/random_schedules.hpp"
#include "planner/search/makespan.hpp"
#include "planner/solver/solver_problem.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"
#include "schedule/validity/validity.hpp"

namespace longhaul::planner {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::json;

Scenario far_apart() { return spread(uniform_scenario(4, 8), 2, Duration{400}, Duration::zero()); }

/// Stands for Python: a shell script that is called as `-m longhaul.solver PROBLEM ANSWER`.
class Solver : public ::testing::Test {
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
  [[nodiscard]] SolverResult run_it() const {
    return solve(schedule::Placement::unidirectional, scenario_, start_, options_);
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
  Schedule start_ = schedule::generate("zb-h1", scenario_);
  SolverOptions options_;
};

/// The answer of the program with the rows of a schedule.
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
  const Schedule better = schedule::generate("cross-ud", scenario_);
  behave(answering(answer_with(better, make_problem(scenario_, start_, options_))));
  const SolverResult solved = run_it();
  EXPECT_EQ(solved.status, "feasible");
  EXPECT_EQ(solved.makespan, 4300ns);
  EXPECT_EQ(solved.schedule.rows, better.rows);
  EXPECT_EQ(solved.schedule.name, "cross-ud-opt");
  EXPECT_EQ(solved.bound, 4300ns) << "ours is higher than the answer's 4200";
  EXPECT_DOUBLE_EQ(solved.seconds, 1.5);
  EXPECT_THAT(solved.holds_for, HasSubstr("ud placement, whole blocks, D and W apart"));
}

TEST_F(Solver, CallsOptimalOnlyWhatIsAsShortAsTheBound) {
  const Schedule better = schedule::generate("cross-ud", scenario_);
  const SolverProblem problem = make_problem(scenario_, start_, options_);
  Json answer = answer_with(better, problem);
  answer["status"] = "optimal";
  behave(answering(answer));
  EXPECT_EQ(run_it().status, "optimal");
  options_.arrangement = Arrangement::grouped;
  const SolverResult grouped = run_it();
  EXPECT_NE(grouped.status, "optimal") << "the model knows no groups";
  options_.arrangement = Arrangement::decoupled;
  answer = answer_with(start_, problem);
  answer["status"] = "optimal";
  behave(answering(answer));
  const Schedule worse = schedule::generate("1f1b", scenario_);
  const SolverResult unproven =
      solve(schedule::Placement::unidirectional, scenario_, worse, options_);
  EXPECT_EQ(unproven.schedule.rows, start_.rows);
  EXPECT_EQ(unproven.status, "feasible") << "5700 against 4300";
}

TEST_F(Solver, KeepsTheWarmStartWhereTheAnswerIsWorse) {
  const Schedule start = schedule::generate("cross-ud", scenario_);
  behave(answering(answer_with(start_, make_problem(scenario_, start, options_))));
  const SolverResult solved =
      solve(schedule::Placement::unidirectional, scenario_, start, options_);
  EXPECT_EQ(solved.status, "warm start");
  EXPECT_EQ(solved.makespan, 4300ns);
  EXPECT_EQ(solved.schedule.rows, start.rows);
}

TEST_F(Solver, KeepsTheWarmStartWhereNothingWasFound) {
  behave(answering({{"status", "unknown"}, {"seconds", 2.0}, {"bound_ns", 4299}}));
  const SolverResult solved = run_it();
  EXPECT_EQ(solved.status, "warm start");
  EXPECT_EQ(solved.makespan, 5700ns);
  EXPECT_EQ(solved.bound, 4300ns);
}

TEST_F(Solver, KillsAChildThatDoesNotEnd) {
  behave("exec sleep 1000");
  options_.grace = std::chrono::milliseconds{50};
  const SolverResult solved = run_it();
  EXPECT_EQ(solved.status, "warm start");
  EXPECT_EQ(solved.bound, 4300ns);
}

TEST_F(Solver, TakesWhatAKilledChildLeft) {
  const Schedule better = schedule::generate("cross-ud", scenario_);
  const std::string flag = directory_ + "/written";
  behave(answering(answer_with(better, make_problem(scenario_, start_, options_))) + " && touch " +
         flag + " && exec sleep 1000");
  options_.grace = std::chrono::milliseconds{50};
  SolverResult solved = run_it();
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

// Python ends with 1 for an exception that nothing catches.
TEST_F(Solver, TakesATracebackForACrash) {
  behave("echo 'Traceback: KeyError' >&2; exit 1");
  EXPECT_EQ(failure().code(), ExitCode::run_failed);
  EXPECT_THAT(failure().what(), HasSubstr("Traceback: KeyError"));
  behave(answering({{"status", "unknown"}, {"seconds", 2.0}, {"bound_ns", 0}}) +
         "; echo 'MemoryError' >&2; exit 1");
  EXPECT_EQ(failure().code(), ExitCode::run_failed);
  EXPECT_THAT(failure().what(), HasSubstr("MemoryError"));
}

TEST_F(Solver, TakesNoAnswerForAFailure) {
  behave("echo 'no room' >&2; exit 0");
  EXPECT_EQ(failure().code(), ExitCode::run_failed);
  EXPECT_THAT(failure().what(), HasSubstr("without an answer (no room)"));
}

TEST_F(Solver, TakesInfeasibleForAFailure) {
  behave(answering({{"status", "infeasible"}, {"seconds", 2.0}, {"bound_ns", 0}}) + "; exit 1");
  EXPECT_EQ(failure().code(), ExitCode::run_failed);
  EXPECT_THAT(failure().what(), HasSubstr("though it starts from one"));
}

TEST_F(Solver, RefusesAnAnswerThatItCannotRead) {
  for (const char* text : {"rubbish", "[1, 2]", "{}", "{\"status\": 7, \"seconds\": 1}"}) {
    behave(std::string{"printf '%s' '"} + text + "' > \"$4\"");
    EXPECT_EQ(failure().code(), ExitCode::run_failed) << text;
  }
}

TEST_F(Solver, RefusesAnAnswerWithUnknownBlocks) {
  const SolverProblem problem = make_problem(scenario_, start_, options_);
  Json answer = answer_with(start_, problem);
  answer["rows"][0][0] = 100000;
  behave(answering(answer));
  EXPECT_THAT(failure().what(), HasSubstr("names a block that there is not"));
  EXPECT_EQ(failure().code(), ExitCode::run_failed);
}

TEST_F(Solver, KeepsTheWarmStartWhereTheAnswerCannotRun) {
  Json answer = answer_with(start_, make_problem(scenario_, start_, options_));
  std::swap(answer["rows"][0][0], answer["rows"][0][20]);
  answer["bound_ns"] = 4400;
  behave(answering(answer));
  const SolverResult solved = run_it();
  EXPECT_EQ(solved.status, "warm start");
  EXPECT_EQ(solved.schedule.rows, start_.rows);
  EXPECT_EQ(solved.makespan, 5700ns);
  EXPECT_EQ(solved.bound, 4400ns);
  EXPECT_THAT(solved.refused, HasSubstr("device 0"));
}

TEST_F(Solver, SaysThatThereIsNoPython) {
  setenv("LONGHAUL_PYTHON", (directory_ + "/nowhere").c_str(), 1);
  EXPECT_EQ(failure().code(), ExitCode::bad_input);
  EXPECT_THAT(failure().what(), HasSubstr("LONGHAUL_PYTHON"));
}

}  // namespace
}  // namespace longhaul::planner
