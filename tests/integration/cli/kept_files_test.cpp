// Files of version 1.0 stay readable, and its commands and options stay (docs/formats.md).
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string kept(const std::string& name) {
  return testing::in_checkout("tests/compatibility/1.0/" + name);
}

Outcome asked(std::vector<std::string> words) {
  words.emplace_back("--json");
  Outcome run = longhaul_run(words);
  EXPECT_EQ(run.code, 0) << words.front() << ": " << run.err;
  return run;
}

nlohmann::json record() { return nlohmann::json::parse(file_text(kept("record.json"))); }

TEST(KeptFiles, ScenarioAndScheduleAreRead) {
  asked({"check", kept("scenario.toml")});
  asked({"check", kept("schedule.csv"), "--scenario", kept("scenario.toml")});
  const auto simulated =
      asked({"simulate", kept("scenario.toml"), "--schedule", kept("schedule.csv")}).json();
  EXPECT_EQ(simulated["scenario"], "kept");
  EXPECT_EQ(simulated["stages"], 2);
  EXPECT_EQ(simulated["replicas"], 2);
  EXPECT_GT(simulated["schedules"][0]["makespan_ns"], 0);
}

TEST(KeptFiles, TraceHasTheTimesOfItsRecord) {
  asked({"check", kept("trace.h5")});
  const auto summary = asked({"trace", "summary", kept("trace.h5")}).json();
  ASSERT_THAT(summary["schedules"], SizeIs(2));
  for (std::size_t i = 0; i < 2; ++i) {
    const auto of_record = record()["schedules"][i];
    EXPECT_EQ(summary["schedules"][i]["schedule"], of_record["schedule"]);
    EXPECT_EQ(summary["schedules"][i]["n"], of_record["n"]);
  }
  asked({"trace", "attribution", kept("trace.h5")});
}

TEST(KeptFiles, RecordAndTraceOfARunAreCompared) {
  const auto compared = asked({"compare", kept("record.json"), kept("trace.h5")}).json();
  EXPECT_THAT(compared["comparisons"], SizeIs(2));
}

TEST(KeptFiles, ADirectoryWithARecordIsWatched) {
  const auto watched = asked({"watch", kept("")}).json();
  EXPECT_EQ(watched["state"], "complete");
  EXPECT_EQ(watched["series"][0]["measured_median_ns"],
            record()["schedules"][0]["measured_median_ns"]);
  EXPECT_EQ(watched["series"][0]["predicted_ns"], record()["schedules"][0]["predicted_ns"]);
}

TEST(KeptFiles, AdviceIsShown) {
  const TempDir dir;
  asked({"report", kept(""), "--out", dir.path("report.html")});
  const auto data = data_of(file_text(dir.path("report.html")));
  const auto advice = nlohmann::json::parse(file_text(kept("advice.json")));
  EXPECT_THAT(data["advice"]["plans"], SizeIs(advice["plans"].size()));
  EXPECT_THAT(data["sentences"], SizeIs(5));
}

/// Keys of an answer, those of the first entry of a list as LIST/KEY.
std::vector<std::string> keys_of(const nlohmann::json& answer) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : answer.items()) {
    keys.push_back(key);
    if (!value.is_array() || value.empty() || !value[0].is_object()) continue;
    for (const auto& [inner, any] : value[0].items()) keys.push_back(key + "/" + inner);
  }
  return keys;
}

TEST(KeptFiles, AnswersHaveEveryKeyThatTheyHad) {
  const auto advice = nlohmann::json::parse(file_text(kept("advice.json")));
  const auto now = asked({"advise", kept("scenario.toml"), "--search-moves", "50"}).json();
  EXPECT_GT(keys_of(advice).size(), 30U);
  EXPECT_THAT(keys_of(now), ::testing::IsSupersetOf(keys_of(advice)));
}

/// Each line of commands.txt: a command, and the options that it had, after a colon.
TEST(KeptFiles, CommandsAndTheirOptionsAreThere) {
  std::istringstream lines{file_text(kept("commands.txt"))};
  int commands = 0;
  for (std::string line; std::getline(lines, line); ++commands) {
    const std::size_t colon = line.find(':');
    std::istringstream name{line.substr(0, colon)}, options{line.substr(colon + 1)};
    std::vector<std::string> words{std::istream_iterator<std::string>{name}, {}};
    words.emplace_back("--help");
    const Outcome help = longhaul_run(words);
    EXPECT_EQ(help.code, 0) << line << help.err;
    for (std::string option; options >> option;)
      EXPECT_THAT(help.out, ::testing::ContainsRegex(option + "[ \n]")) << line;
  }
  EXPECT_GE(commands, 35);
}

TEST(KeptFiles, TheToolNamesWhatItPromises) {
  const Outcome run = longhaul_run({"version"});
  EXPECT_THAT(run.out, HasSubstr("\nformats 1.0: command line, scenario, schedule 1, record 1, "
                                 "trace 4 (reads 2 to 4)\n"));
  EXPECT_EQ(longhaul_run({"--version"}).out + run.out.substr(run.out.find('\n') + 1), run.out)
      << "programs read one line";
}

}  // namespace
}  // namespace longhaul::test
