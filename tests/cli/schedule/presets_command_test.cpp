#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "collective/overlap/overlaps.hpp"
#include "schedule/generators/generate.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

TEST(PresetsCommand, ListsModelsLinksAndSchedules) {
  const Outcome run = longhaul_run({"presets"});
  EXPECT_EQ(run.code, 0) << run.err;
  for (const char* text : {"m70-measured", "cross-region", "zb-h1", "W fills the gaps"})
    EXPECT_THAT(run.out, HasSubstr(text));

  const auto answer = longhaul_run({"presets", "--json"}).json();
  ASSERT_GE(answer["schedules"].size(), schedule::static_schedule_names().size());
  for (std::size_t i = 0; i < schedule::static_schedule_names().size(); ++i) {
    EXPECT_EQ(answer["schedules"][i]["name"], schedule::static_schedule_names()[i]);
    EXPECT_NE(answer["schedules"][i]["summary"], "");
  }
}

TEST(PresetsCommand, ListsEveryOverlapThoseThatAreSearchedToo) {
  const auto answer = longhaul_run({"presets", "--json"}).json();
  std::vector<std::string> names;
  for (const auto& overlap : answer["overlaps"]) names.push_back(overlap["name"]);
  EXPECT_EQ(names, collective::overlap_names());
}

}  // namespace
}  // namespace longhaul::test
