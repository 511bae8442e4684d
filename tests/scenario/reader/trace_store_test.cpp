// Traces of links in files beside a scenario's.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::HasSubstr;

class TraceFiles : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "traces-XXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream{directory_ / name} << text;
  }
  [[nodiscard]] std::string complaint_of(const std::string& trace) const {
    write("s.toml", with_line(0, "trace = \"" + trace + "\""));
    try {
      (void)load_scenario(directory_ / "s.toml");
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  std::filesystem::path directory_;
};

TEST_F(TraceFiles, LieBesideTheScenarioAndTravelInItsText) {
  write("far.csv", "# of a day\ntime_s,bandwidth_gbps\n0,5\n1,0.3\n");
  write("s.toml", with_line(0, "trace = \"far.csv\""));
  const Scenario read = load_scenario(directory_ / "s.toml");
  const LinkTrace& trace = *read.link(kWest, kEast)->weather.trace;
  EXPECT_EQ(trace.name, "far.csv");
  // No other reader needs the file: with overrides and more lines below, as records have them.
  const Scenario handed =
      parse_scenario(read.text + "# --change 3:x\n", "elsewhere/s.toml", {{"run.seed=5"}});
  const LinkTrace& again = *handed.link(kWest, kEast)->weather.trace;
  ASSERT_EQ(again.states.size(), 2U);
  EXPECT_EQ(again.states[1].bandwidth, Bandwidth{0.3e9});
  EXPECT_EQ(again.states[1].at, 1s);
  EXPECT_FALSE(again.gives_latency);
  EXPECT_EQ(handed.run.seed, 5U);
  // Both directions share one.
  EXPECT_EQ(read.link(kEast, kWest)->weather.trace.get(), &trace);
  const Scenario played = handed.as_played();
  EXPECT_EQ(played.link(kEast, kWest)->weather.trace, played.link(kWest, kEast)->weather.trace);
}

TEST_F(TraceFiles, MayBeNamedOnTheCommandLine) {
  write("far.csv", "time_s,latency_ms\n0,33\n");
  write("s.toml", joined(kLines));
  const std::vector<std::string> set{"link.trace=far.csv"};
  const Scenario read = load_scenario(directory_ / "s.toml", set);
  EXPECT_EQ(parse_scenario(read.text, "elsewhere.toml", set)
                .link(kWest, kEast)
                ->weather.trace->states[0]
                .latency,
            33ms);
}

TEST_F(TraceFiles, ThatAreNoneAreRefused) {
  EXPECT_THAT(complaint_of("none.csv"), HasSubstr("none.csv: the trace of a link cannot be read "
                                                  "(there is no such file). Correct link.trace"));
  EXPECT_THAT(complaint_of("."), HasSubstr("this is no file"));
  EXPECT_THAT(complaint_of("/dev/zero"), HasSubstr("this is no file"));
  write("bad.csv", "time_s,latency_ms\n0,1\n0,1\n");
  EXPECT_THAT(complaint_of("bad.csv"), HasSubstr("bad.csv:3: "));
  write("$(touch x);'\".csv", "time_s,latency_ms\n0,1\n");
  EXPECT_EQ(complaint_of("$(touch x);'\\\".csv"), "accepted");
}

TEST_F(TraceFiles, OfAHundredThousandLinesTravelToo) {
  std::string csv = "time_s,latency_ms,bandwidth_gbps\n";
  for (int i = 0; i < 100'000; ++i)
    csv += fmt::format("{},{},{}\n", i, 10 + i % 7, 1 + 0.001 * (i % 97));
  write("far.csv", csv);
  write("s.toml", with_line(0, "trace = \"far.csv\""));
  const Scenario read = load_scenario(directory_ / "s.toml");
  const Scenario handed = parse_scenario(read.text, "elsewhere.toml");
  ASSERT_EQ(handed.link(kWest, kEast)->weather.trace->states.size(), 100'000U);
  EXPECT_EQ(handed.link(kWest, kEast)->weather.trace->states[99'999].at, 99'999s);
  // A scenario that was taken out of a record, larger than any that people write.
  write("taken.toml", read.text);
  EXPECT_GT(std::filesystem::file_size(directory_ / "taken.toml"), std::size_t{1} << 20);
  std::filesystem::remove(directory_ / "far.csv");
  EXPECT_EQ(
      load_scenario(directory_ / "taken.toml").link(kWest, kEast)->weather.trace->states.size(),
      100'000U);
}

}  // namespace
}  // namespace longhaul::scenario
