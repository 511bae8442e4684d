#include "planner/make_schedule.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "schedule/generators/generate.hpp"
#include "schedule/generators/registry.hpp"

namespace longhaul {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> names_of(const std::vector<RequestedSchedule>& requested) {
  std::vector<std::string> names;
  for (const RequestedSchedule& each : requested) names.push_back(each.name);
  return names;
}

std::string refusal(const std::string& list) {
  try {
    (void)requested_schedules(list);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(RequestedSchedules, KeepsNamesAndFilesAndExpandsGroups) {
  EXPECT_THAT(names_of(requested_schedules("1f1b, best ,mine.csv")),
              ElementsAre("1f1b", "best", "mine.csv"));
  EXPECT_THAT(
      names_of(requested_schedules("mine.csv,static")),
      ElementsAre("mine.csv", "gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zbv"));
  std::size_t dynamic = 0;
  for (const Generator& generator : generators())
    dynamic += generator.knowledge == Knowledge::times ? 1 : 0;
  EXPECT_THAT(requested_schedules("dynamic"), SizeIs(dynamic));
}

TEST(RequestedSchedules, KnowsWhatCameWithAGroup) {
  const auto requested = requested_schedules("best,static");
  EXPECT_FALSE(requested.front().from_group);
  for (std::size_t i = 1; i < requested.size(); ++i) EXPECT_TRUE(requested[i].from_group);
}

TEST(RequestedSchedules, RefusesWhatItCannotTell) {
  EXPECT_THAT(refusal("static,1f1b"), HasSubstr("\"1f1b\" is named twice"));
  EXPECT_THAT(refusal("best,best"), HasSubstr("\"best\" is named twice"));
  EXPECT_THAT(refusal("a.csv,a.csv"), HasSubstr("\"a.csv\" is named twice"));
  EXPECT_THAT(refusal("1f1b,,zbv"), HasSubstr("empty name"));
  EXPECT_THAT(refusal(""), HasSubstr("empty name"));
  EXPECT_EQ(refusal("zb_h1"), "There is no schedule \"zb_h1\". Did you mean \"zb-h1\"?");
  EXPECT_EQ(refusal("bets"), "There is no schedule \"bets\". Did you mean \"best\"?");
  EXPECT_EQ(refusal("dynamc"), "There is no schedule \"dynamc\". Did you mean \"dynamic\"?");
}

TEST(ScheduleNames, HoldEveryGeneratorAndWhatIsLookedFor) {
  std::vector<std::string> names;
  for (const ScheduleName& known : schedule_names()) {
    EXPECT_NE(known.summary, "") << known.name;
    names.push_back(known.name);
  }
  for (const Generator& generator : generators()) {
    EXPECT_THAT(names, Contains(std::string{generator.name}));
    EXPECT_FALSE(is_looked_for(generator.name));
  }
  EXPECT_THAT(names, Contains("best"));
  for (const char* name : {"best", "cross-ud-opt", "cross-wave-opt"})
    EXPECT_TRUE(is_looked_for(name)) << name;
}

TEST(MakeSchedule, GeneratesByName) {
  const Scenario scenario = uniform_scenario(4, 8);
  const ScheduleResult made = make_schedule("zb-h1", scenario);
  EXPECT_EQ(made.schedule, generate("zb-h1", scenario));
  EXPECT_FALSE(made.found);
  EXPECT_THROW((void)make_schedule("zb-h9", scenario), Error);
}

TEST(MakeSchedule, BestIsNoWorseThanWhatItChoseFrom) {
  const Scenario scenario = spread(uniform_scenario(4, 8), 2, Duration{100}, Duration{0});
  PlannerOptions options;
  options.search.moves = 200;
  options.search.threads = 1;
  const ScheduleResult made = make_schedule("best", scenario, options);
  EXPECT_EQ(made.schedule.name, "best");
  ASSERT_TRUE(made.found);
  for (const Candidate& candidate : made.found->candidates.fitting)
    EXPECT_LE(made.found->makespan, candidate.makespan) << candidate.schedule.name;
  EXPECT_EQ(make_schedule("best", scenario, options).schedule, made.schedule) << "repeatable";
}

}  // namespace
}  // namespace longhaul
