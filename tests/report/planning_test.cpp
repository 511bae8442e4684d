#include "report/planning.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/program/arguments.hpp"

namespace longhaul::report {
namespace {

TEST(Planning, OptionsReachTheSolver) {
  PlannerArguments arguments;
  Arguments command{""};
  add_planner_options(command, arguments);
  const planner::SolverOptions plain = planner_options_of(arguments, Arrangement::decoupled).solver;
  EXPECT_TRUE(plain.include_dp && plain.fuse && plain.microbatch_order);
  const std::vector<std::string> words{"--solver-without-dp", "--solver-without-fusion",
                                       "--any-microbatch-order"};
  EXPECT_FALSE(command.parse(words));
  const planner::SolverOptions told = planner_options_of(arguments, Arrangement::decoupled).solver;
  EXPECT_FALSE(told.include_dp || told.fuse || told.microbatch_order);
}

TEST(Planning, SchedulesThatWereNotLookedAtAreCounted) {
  planner::ScheduleResult made;
  made.schedule.name = "best";
  made.found.emplace();
  made.found->candidates.fitting.resize(2);
  made.found->candidates.rejected = {{"gpipe", "over its budget"}};
  EXPECT_EQ(planning_note(made),
            "best: from , the best of 2 schedules that fit; 0 moves tried, 0 taken\n");
  made.found->candidates.rejected.push_back({"zbv", "no time", true});
  EXPECT_EQ(planning_note(made),
            "best: from , the best of 2 schedules that fit (1 not looked at, for want of time); "
            "0 moves tried, 0 taken\n");
}

TEST(Planning, AScheduleOutsideTheSolversClassHasNoGapToItsBound) {
  planner::ScheduleResult made;
  made.found.emplace();
  made.solved.emplace();
  made.solved->makespan = made.solved->bound = Duration{1000};
  EXPECT_EQ(planning_json(made)["solver"]["gap"], 0.0);
  made.solved->bound = Duration{1001};
  EXPECT_TRUE(planning_json(made)["solver"]["gap"].is_null());
}

}  // namespace
}  // namespace longhaul::report
