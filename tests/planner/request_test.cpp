#include "planner/request.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace longhaul::planner {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<std::string> names_of(const std::vector<ScheduleRequest>& requested) {
  std::vector<std::string> names;
  for (const ScheduleRequest& each : requested) names.push_back(each.name);
  return names;
}

std::string refusal(const std::string& list) {
  try {
    (void)parse_schedules(list);
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(ScheduleRequests, KeepsNamesAndFilesAndExpandsGroups) {
  EXPECT_THAT(names_of(parse_schedules("1f1b, best ,mine.csv")),
              ElementsAre("1f1b", "best", "mine.csv"));
  EXPECT_THAT(names_of(parse_schedules("mine.csv,static")),
              ElementsAre("mine.csv", "gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-h2", "zbv",
                          "zbv-auto"));
  std::size_t dynamic = 0;
  for (const schedule::Generator& generator : schedule::generators())
    dynamic += generator.knowledge == schedule::Knowledge::times ? 1 : 0;
  EXPECT_THAT(parse_schedules("dynamic"), SizeIs(dynamic));
}

TEST(ScheduleRequests, KnowsWhatCameWithAGroup) {
  const auto requested = parse_schedules("best,static");
  EXPECT_FALSE(requested.front().from_group);
  for (std::size_t i = 1; i < requested.size(); ++i) EXPECT_TRUE(requested[i].from_group);
}

TEST(ScheduleRequests, RefusesWhatItCannotTell) {
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
  for (const schedule::Generator& generator : schedule::generators()) {
    EXPECT_THAT(names, Contains(std::string{generator.name}));
    EXPECT_FALSE(parse_schedule(generator.name).is_looked_for());
  }
  EXPECT_THAT(names, Contains("best"));
  for (const char* name : {"best", "cross-ud-opt", "cross-wave-opt"})
    EXPECT_TRUE(parse_schedule(name).is_looked_for()) << name;
}

TEST(ScheduleRequests, SayWhatTheirGeneratorsSay) {
  const ScheduleRequest atlas = parse_schedule("atlas-even");
  EXPECT_EQ(atlas.generator, schedule::find_generator("atlas-even"));
  EXPECT_TRUE(atlas.shares_wan());
  EXPECT_FALSE(atlas.put_in_cells);
  EXPECT_TRUE(atlas.has_timetable());
  EXPECT_FALSE(parse_schedule("varuna").shares_wan());
  EXPECT_TRUE(parse_schedule("varuna").has_timetable());
  EXPECT_FALSE(parse_schedule("cross-ud").has_timetable());
}

TEST(ScheduleRequests, TakeTheSharingApartFromTheName) {
  const ScheduleRequest shared = parse_schedule("atlas+varuna");
  EXPECT_EQ(shared.name, "atlas+varuna");
  EXPECT_EQ(shared.generator, schedule::find_generator("varuna"));
  EXPECT_TRUE(shared.put_in_cells);
  EXPECT_TRUE(shared.shares_wan());
  EXPECT_FALSE(shared.has_timetable());
  const ScheduleRequest best = parse_schedule("atlas+best");
  EXPECT_EQ(best.search, ScheduleSearch::shared_best);
  EXPECT_FALSE(best.put_in_cells);
  EXPECT_TRUE(best.shares_wan());
  const ScheduleRequest solved = parse_schedule("atlas+cross-ud-opt");
  EXPECT_EQ(solved.search, ScheduleSearch::cross_ud_opt);
  EXPECT_TRUE(solved.put_in_cells);
}

TEST(ScheduleRequests, KnowFilesInCellsAndNot) {
  const auto requests = parse_schedules("mine.csv,atlas+mine.csv");
  EXPECT_EQ(requests[0].file, "mine.csv");
  EXPECT_FALSE(requests[0].put_in_cells);
  EXPECT_EQ(requests[1].file, "mine.csv");
  EXPECT_TRUE(requests[1].put_in_cells);
  EXPECT_THROW(static_cast<void>(parse_schedule("mine.csv")), Error);
}

}  // namespace
}  // namespace longhaul::planner
