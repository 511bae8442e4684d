#include "scenario/files/link_trace.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string refusal(const std::string& csv) {
  try {
    (void)parse_link_trace(csv, "t.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(LinkTrace, ReadsColumnsByNameAndUnit) {
  const LinkTrace trace = parse_link_trace(
      "# measured by hand\n"
      "bandwidth_gbps,time_s,latency_ms\n"
      "5,0,10\r\n"
      "\n"
      "0.5, 1.5 ,20.25\n",
      "t.csv");
  EXPECT_TRUE(trace.gives_latency && trace.gives_bandwidth);
  ASSERT_EQ(trace.states.size(), 2U);
  EXPECT_EQ(trace.states[0].at, 0ns);
  EXPECT_EQ(trace.states[0].bandwidth, 5_Gbps);
  EXPECT_EQ(trace.states[1].at, 1500ms);
  EXPECT_EQ(trace.states[1].latency, 20'250us);
  EXPECT_EQ(trace.states[1].bandwidth, 500_Mbps);
}

TEST(LinkTrace, CellsMayCarryTheirUnit) {
  const LinkTrace trace =
      parse_link_trace("time,latency,bandwidth\n0s,9ms,4GB/s\n2min,500us,unlimited\n", "t.csv");
  EXPECT_EQ(trace.states[0].bandwidth, 32_Gbps);
  EXPECT_EQ(trace.states[1].at, 2min);
  EXPECT_EQ(trace.states[1].latency, 500us);
  EXPECT_TRUE(trace.states[1].bandwidth.is_unlimited());
}

TEST(LinkTrace, OneColumnBesideTheTimeIsEnough) {
  const LinkTrace rates = parse_link_trace("time_ms,bandwidth_mbps\n0,300\n", "t.csv");
  EXPECT_FALSE(rates.gives_latency);
  EXPECT_EQ(rates.states[0].bandwidth, 300_Mbps);
  EXPECT_FALSE(parse_link_trace("time_h,latency_us\n0,300\n", "t.csv").gives_bandwidth);
}

struct BadCsv {
  std::string csv;
  std::string place;
  std::string reason;
};

void PrintTo(const BadCsv& bad, std::ostream* out) { *out << bad.csv; }

class BadTrace : public ::testing::TestWithParam<BadCsv> {};

TEST_P(BadTrace, IsRefusedWithItsLineAndTheReason) {
  const std::string said = refusal(GetParam().csv);
  EXPECT_THAT(said, StartsWith(GetParam().place));
  EXPECT_THAT(said, HasSubstr(GetParam().reason));
  EXPECT_TRUE(said.ends_with('.') || said.ends_with('?')) << said;
}

const std::string kHead = "time_s,latency_ms,bandwidth_gbps\n";

INSTANTIATE_TEST_SUITE_P(
    Header, BadTrace,
    ::testing::Values(
        BadCsv{"", "t.csv: ", "no state of a link"},
        BadCsv{"# only words\n", "t.csv: ", "no state of a link"},
        BadCsv{kHead, "t.csv: ", "a first line alone"},
        BadCsv{"0,10,5\n", "t.csv:1: ", "unknown column \"0\""},
        BadCsv{"time_s,bandwith_gbps\n", "t.csv:1: ", "Did you mean \"bandwidth_gbps\"?"},
        BadCsv{"time_s,latency_gbps\n", "t.csv:1: ", "unknown column \"latency_gbps\""},
        BadCsv{"time_s\n0\n", "t.csv:1: ", "no trace of a link"},
        BadCsv{"latency_ms\n0\n", "t.csv:1: ", "no trace of a link"},
        BadCsv{"time_s,time_ms,latency_ms\n", "t.csv:1: ", "says what another one says"}));

INSTANTIATE_TEST_SUITE_P(
    Lines, BadTrace,
    ::testing::Values(
        BadCsv{kHead + "1,10,5\n", "t.csv:2: ", "Begin at 0"},
        BadCsv{kHead + "0,10,5\n5,10,5\n4,10,5\n", "t.csv:4: ", "time 4 s does not lie behind 5 s"},
        BadCsv{kHead + "0,10,5\n0,10,5\n", "t.csv:3: ", "does not lie behind"},
        BadCsv{kHead + "0,10\n", "t.csv:2: ", "2 values (3 columns"},
        BadCsv{kHead + "0,10,5,\n", "t.csv:2: ", "4 values (3 columns"},
        BadCsv{kHead + "0,-10,5\n", "t.csv:2: ", "latency = \"-10\" is out of range"},
        BadCsv{kHead + "-1,10,5\n", "t.csv:2: ", "time = \"-1\" is out of range"},
        BadCsv{kHead + "0,10,0\n", "t.csv:2: ", "link.outage"},
        BadCsv{kHead + "0,10,-5\n", "t.csv:2: ", "bandwidth = \"-5\" is out of range"},
        BadCsv{kHead + "0,10,1e30\n", "t.csv:2: ", "out of range"},
        BadCsv{kHead + "0,nan,5\n", "t.csv:2: ", "latency = \"nan\" is no number"},
        BadCsv{kHead + "0,inf,5\n", "t.csv:2: ", "is no number"},
        BadCsv{kHead + "0,1e300,5\n", "t.csv:2: ", "out of range (0 to 36 years)"},
        BadCsv{kHead + "0,10ms,5\n", "t.csv:2: ", "\"10ms\" is no number"},
        BadCsv{kHead + "0,,5\n", "t.csv:2: ", "\"\" is no number"},
        BadCsv{"time,latency\n0,10ms\n", "t.csv:2: ", "it has no unit"},
        BadCsv{"time,latency\n0s," + std::string(100, '1') + "\n", "t.csv:2: ", "is no value"},
        BadCsv{"time,latency\n0s,10Gbps\n", "t.csv:2: ", "unknown unit"}));

TEST(LinkTrace, AbsurdSizesAreRefused) {
  EXPECT_THAT(refusal(std::string(kLargestTrace + 1, '\n')), HasSubstr("larger than"));
  std::string csv = "time_s,latency_ms\n";
  for (std::size_t i = 0; i <= kMostStates; ++i) csv += std::to_string(i) + ",1\n";
  EXPECT_THAT(refusal(csv), StartsWith("t.csv:200002: there are more than 200000 lines"));
  EXPECT_THAT(refusal(std::string(1'000'000, ',')), StartsWith("t.csv:1: unknown column \"\""));
}

TEST(LinkTrace, WritesWhatItReads) {
  Random random{7};
  LinkTrace trace;
  trace.gives_latency = trace.gives_bandwidth = true;
  Duration at{};
  for (int i = 0; i < 1000; ++i) {
    trace.states.push_back({at, Duration{random.between(0, 1'000'000'000)},
                            Bandwidth{1e10 * (random.uniform() + 1e-3)}});
    at += Duration{random.between(1, 100'000'000'000)};
  }
  trace.states[3].bandwidth = Bandwidth::unlimited();
  const LinkTrace again = parse_link_trace(write_link_trace(trace), "again");
  ASSERT_EQ(again.states.size(), trace.states.size());
  for (std::size_t i = 0; i < trace.states.size(); ++i) {
    EXPECT_EQ(again.states[i].at, trace.states[i].at);
    EXPECT_EQ(again.states[i].latency, trace.states[i].latency);
    EXPECT_EQ(again.states[i].bandwidth, trace.states[i].bandwidth);
  }
  trace.gives_latency = false;
  EXPECT_FALSE(parse_link_trace(write_link_trace(trace), "again").gives_latency);
}

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
