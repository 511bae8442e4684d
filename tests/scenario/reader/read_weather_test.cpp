#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(LinkWeather, NoneUnlessGiven) {
  const Link plain = link_with("");
  EXPECT_FALSE(plain.weather.any());
  EXPECT_FALSE(plain.jitter.any());
}

TEST(LinkWeather, LossIsANumberOrATable) {
  EXPECT_EQ(link_with("loss = 0.25").weather.loss.probability, 0.25);
  EXPECT_FALSE(link_with("loss = 0.25").weather.loss.delay.has_value());
  const Loss loss = link_with("loss = {probability = 0.001, delay = \"200ms\"}").weather.loss;
  EXPECT_EQ(loss.probability, 0.001);
  EXPECT_EQ(loss.delay, 200ms);
  EXPECT_FALSE(link_with("loss = 0").weather.any());
  EXPECT_EQ(link_with("", {"link.loss.probability=0.5"}).weather.loss.probability, 0.5);
}

TEST(LinkWeather, OutagesAreOneOrSeveral) {
  const auto one = link_with("outage = [\"30s\", \"5s\"]").weather.outages;
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].begin, 30s);
  EXPECT_EQ(one[0].length, 5s);
  const auto two = link_with("outage = [[\"0s\", \"5s\"], [\"5s\", \"1ms\"]]").weather.outages;
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[1].begin, 5s);
  EXPECT_EQ(two[1].length, 1ms);
  EXPECT_TRUE(link_with("outage = []").weather.outages.empty());
}

TEST(LinkWeather, JitterHasADistributionAndASeed) {
  const Jitter jitter =
      link_with("jitter = {latency = 0.3, distribution = \"exponential\", seed = 7}").jitter;
  EXPECT_EQ(jitter.kind, JitterKind::exponential);
  EXPECT_EQ(jitter.seed, 7U);
  EXPECT_EQ(jitter.latency, 0.3);
  EXPECT_EQ(link_with("jitter = 0.2").jitter.kind, JitterKind::lognormal);
  EXPECT_FALSE(link_with("jitter = 0.2").jitter.seed.has_value());
  EXPECT_EQ(link_with("jitter = {distribution = \"uniform\", transfer = 0.5}").jitter.kind,
            JitterKind::uniform);
}

const std::string kSection = R"(
[traces]
"t.csv" = """
time_s,latency_ms,bandwidth_gbps
0,15,2
60,30,1
"""
)";

TEST(LinkWeather, ATraceMayStandInTheText) {
  const Link traced = link_with("trace = \"t.csv\"\ntrace_repeat = \"2min\"" + kSection);
  ASSERT_NE(traced.weather.trace, nullptr);
  EXPECT_EQ(traced.weather.trace->states.size(), 2U);
  EXPECT_EQ(traced.weather.repeat, 2min);
  EXPECT_EQ(traced.latency, 10ms);      // given: what schedules are made for
  EXPECT_EQ(traced.bandwidth, 2_Gbps);  // not given: of time 0
  const Link preset = link_with("preset = \"atlas-40ms\"\ntrace = \"t.csv\"" + kSection);
  EXPECT_EQ(preset.bandwidth, 293_Mbps);
}

struct BadLinkLines {
  std::string lines;
  std::string place;
  std::string reason;
};

void PrintTo(const BadLinkLines& bad, std::ostream* out) { *out << bad.lines; }

class BadWeather : public ::testing::TestWithParam<BadLinkLines> {};

TEST_P(BadWeather, IsRefusedWithItsPlaceAndTheReason) {
  const std::string said = complaint(with_line(0, GetParam().lines));
  EXPECT_THAT(said, AllOf(StartsWith("s.toml:" + GetParam().place), HasSubstr(GetParam().reason)));
  EXPECT_TRUE(said.ends_with('.') || said.ends_with('?')) << said;
}

INSTANTIATE_TEST_SUITE_P(
    Keys, BadWeather,
    ::testing::Values(
        BadLinkLines{"loss = 1.5", "16:8: ", "out of range (0 to 1)"},
        BadLinkLines{"loss = -0.1", "16:8: ", "out of range"},
        BadLinkLines{"loss = \"0.1\"", "16:8: ", "is no number"},
        BadLinkLines{"loss = {delay = \"1s\"}", "16:8: ", "link.loss.probability is missing"},
        BadLinkLines{"loss = {probability = 0.1, delay = \"-1s\"}", "16:36: ", "is negative"},
        BadLinkLines{"loss = {probability = 0.1, dely = \"1s\"}",
                     "16:28: ", "Did you mean \"delay\"?"},
        BadLinkLines{"outage = \"30s\"", "16:10: ", "is no list"},
        BadLinkLines{"outage = [\"30s\"]", "16:10: ", "its begin and its length"},
        BadLinkLines{"outage = [\"30s\", \"0s\"]", "16:18: ", "lasts no time"},
        BadLinkLines{"outage = [\"-1s\", \"5s\"]", "16:11: ", "is negative"},
        BadLinkLines{"outage = [\"30s\", 5]", "16:18: ", "it has no unit"},
        BadLinkLines{"outage = [[\"30s\", \"5s\"], [\"34s\", \"5s\"]]",
                     "16:26: ", "link.outage[1] begins before the one in front of it ends"},
        BadLinkLines{"outage = [[\"30s\", \"5s\"], [\"3s\", \"5s\"]]",
                     "16:26: ", "stand in order of time"},
        BadLinkLines{"outage = [[\"30s\", \"5s\"], 3]", "16:26: ", "is no list"},
        BadLinkLines{"outage = [\"1000000h\", \"5s\"]", "16:11: ", "too long"},
        BadLinkLines{"jitter = {latency = 0.1, distribution = \"pareto\"}",
                     "16:41: ", "\"pareto\" is unknown"},
        BadLinkLines{"jitter = {latency = 0.6, distribution = \"uniform\"}",
                     "16:21: ", "more than a uniform distribution can have"},
        BadLinkLines{"jitter = {latency = 0.1, seed = -1}", "16:33: ", "out of range"},
        BadLinkLines{"jitter = {latency = -0.1}", "16:21: ", "out of range"}));

INSTANTIATE_TEST_SUITE_P(
    Traces, BadWeather,
    ::testing::Values(
        BadLinkLines{"trace_repeat = \"1h\"", "16:16: ", "the link has no trace"},
        BadLinkLines{"trace = 3", "16:9: ", "is no text"},
        BadLinkLines{"trace = \"\"", "16:9: ", "names no file"},
        BadLinkLines{"trace = \"a\\nb\"", "16:9: ", "names no file"},
        BadLinkLines{"trace = \"t.csv\"\ntrace_repeat = \"60s\"" + kSection,
                     "17:16: ", "ends before the trace does (its last time is 60 s)"},
        BadLinkLines{"trace = \"t.csv\"\ntrace_repeat = \"1ms\"" + kSection,
                     "17:16: ", "ends before"},
        BadLinkLines{"trace = \"t.csv\"\n[traces]\n\"t.csv\" = 3", "18:11: ", "is no text"},
        BadLinkLines{"trace = \"t.csv\"\n[traces]\n\"t.csv\" = \"time_s,latency_ms\\n5,1\\n\"",
                     "18:11: traces.t.csv:2: ", "Begin at 0"}));

TEST(LinkWeather, ARepetitionMustNotBeAbsurdlyShort) {
  const std::string said = complaint(with_line(
      0, "trace = \"t\"\ntrace_repeat = \"2ns\"\n[traces]\nt = \"time_s,bandwidth_bps\\n0,1\\n\""));
  EXPECT_THAT(said, HasSubstr("is too short"));
}

/// 1 MB takes 1 s, in which 2 us come half a million times; gradients that no one sends count not.
TEST(LinkWeather, ARepetitionMayBeShortWhereTransfersAreToo) {
  const auto repeated = [](const std::string& period, const std::string& weights) {
    return parse_scenario(
        with_line(0, "trace = \"t\"\ntrace_repeat = \"" + period +
                         "\"\n[traces]\nt = \"time_s,bandwidth_mbps\\n0,8\\n\""),
        "s.toml", std::vector<std::string>{"costs.message=1MB", "costs.weights=" + weights});
  };
  EXPECT_NO_THROW(static_cast<void>(repeated("2us", "1GB")));
  EXPECT_THROW(static_cast<void>(repeated("0.9us", "1GB")), Error);
}

TEST(LinkWeather, ATraceOfARateNeedsTheSizeOfAMessage) {
  std::vector<std::string> lines = kLines;
  lines[2] = "";
  lines.push_back("trace = \"t.csv\"" + kSection);
  EXPECT_THAT(complaint(joined(lines)), HasSubstr("needs costs.message"));
}

TEST(LinkWeather, IsPlayedAtTheTimeScale) {
  Scenario scenario = parse_scenario(
      with_line(0,
                "trace = \"t.csv\"\ntrace_repeat = \"2min\"\noutage = [\"30s\", \"5s\"]\n"
                "loss = {probability = 1, delay = \"200ms\"}" +
                    kSection),
      "s.toml");
  scenario.run.time_scale = 0.5;
  const LinkWeather played = scenario.as_played().link(kWest, kEast)->weather;
  EXPECT_EQ(played.trace->states[1].at, 30s);
  EXPECT_EQ(played.trace->states[1].latency, 15ms);
  EXPECT_EQ(played.trace->states[1].bandwidth, 2_Gbps);
  EXPECT_EQ(played.repeat, 1min);
  EXPECT_EQ(played.outages[0].begin, 15s);
  EXPECT_EQ(played.outages[0].length, 2500ms);
  EXPECT_EQ(played.loss.delay, 100ms);
  EXPECT_EQ(scenario.as_played().link(kEast, kWest)->weather.trace->states[1].at, 30s);
}

}  // namespace
}  // namespace longhaul::scenario
