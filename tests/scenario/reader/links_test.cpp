#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

Scenario parse_links(const std::string& text) { return parse_scenario(text, "s.toml"); }

TEST(LoadLink, RatiosAreOfTheLargestForwardAndTheLargestMessage) {
  const Scenario scenario = parse_links(R"(
[parallel]
stages = 2
microbatches = 4
[costs]
forward = ["20ms", "38ms"]
message = ["1MiB", "64MiB"]
[[datacenter]]
name = "west"
stages = [0]
[[datacenter]]
name = "east"
stages = [1]
[[link]]
from = "west"
to = "east"
latency_ratio = 0.25
transfer_ratio = 2
sharing = "datacenter"
[[link]]
from = "east"
to = "west"
rtt = "9ms"
bandwidth = "5Gbps"
)");
  const Link& there = *scenario.link(kWest, kEast);
  EXPECT_EQ(there.latency, 9'500'000ns);
  EXPECT_EQ(64_MiB / there.bandwidth, 76ms);
  EXPECT_EQ(there.sharing, Sharing::datacenter);
  const Link& back = *scenario.link(kEast, kWest);
  EXPECT_EQ(back.latency, 4'500'000ns);
  EXPECT_EQ(back.bandwidth, 5_Gbps);
}

TEST(LoadLink, PresetsGiveWhatIsNotGiven) {
  const auto link = [](const std::string& line) {
    return *parse_links(with_line(15, line)).link(kWest, kEast);
  };
  EXPECT_EQ(link("preset = \"atlas-40ms\"").bandwidth, 293_Mbps);
  EXPECT_EQ(link("preset = \"atlas-40ms\"").latency, 40ms);
  EXPECT_EQ(link("preset = \"cross-region\"\nlatency = \"30ms\"").latency, 30ms);
  EXPECT_EQ(link("preset = \"cross-region\"\nlatency = \"30ms\"").bandwidth, Bandwidth{1.4e9});
  EXPECT_TRUE(link("preset = \"cross-region\"\ntransfer_ratio = 0").bandwidth.is_unlimited());
  EXPECT_TRUE(link("bandwidth = \"unlimited\"").bandwidth.is_unlimited());
}

TEST(LoadLink, AllFillsThePairsThatNoOtherNames) {
  const Scenario scenario = parse_links(R"(
parallel = {stages = 3, microbatches = 4}
costs = {forward = "1ms"}
datacenter = [{name = "a", stages = [0]}, {name = "b", stages = [1]}, {name = "c", stages = [2]}]
link = [{between = "all", latency = "5ms"}, {between = ["b", "a"], latency = "1ms"},
        {between = ["c", "c"], latency = "1us"}]
)");
  EXPECT_EQ(scenario.links.size(), 7U);
  EXPECT_EQ(scenario.link(DatacenterId{0}, DatacenterId{1})->latency, 1ms);
  EXPECT_EQ(scenario.link(DatacenterId{2}, DatacenterId{1})->latency, 5ms);
  EXPECT_EQ(scenario.link(DatacenterId{2}, DatacenterId{2})->latency, 1us);
  EXPECT_EQ(scenario.link(DatacenterId{0}, DatacenterId{0}), nullptr);
}

TEST(LoadLink, JitterIsOneSpreadOrATable) {
  const auto jitter = [](const std::string& line, const std::vector<std::string>& set = {}) {
    return parse_scenario(with_line(15, line), "s.toml", set).link(kEast, kWest)->jitter;
  };
  EXPECT_FALSE(jitter("").any());
  EXPECT_EQ(jitter("jitter = 0.2").latency, 0.2);
  EXPECT_EQ(jitter("jitter = 0.2").transfer, 0.2);
  EXPECT_EQ(jitter("jitter = 0.2").correlation, 0);
  const Jitter table = jitter("jitter = {transfer = 0.1, correlation = 1}");
  EXPECT_EQ(table.latency, 0);
  EXPECT_EQ(table.transfer, 0.1);
  EXPECT_EQ(table.correlation, 1);
  EXPECT_EQ(jitter("", {"link.jitter=0.5"}).latency, 0.5);
  EXPECT_EQ(jitter("", {"link.west-east.jitter.latency=0.3"}).latency, 0.3);
  EXPECT_EQ(jitter("jitter = {latency = 0.1}", {"link.jitter.transfer=0.3"}).transfer, 0.3);
}

TEST(LoadNode, ReadsInterfaces) {
  const Scenario scenario = parse_links(
      joined(kLines) + "[[node]]\ndatacenter = \"east\"\ngpus = 4\negress = \"5Gbps\"\n");
  ASSERT_NE(scenario.interfaces(kEast), nullptr);
  EXPECT_EQ(scenario.interfaces(kEast)->gpus, 4);
  EXPECT_EQ(scenario.interfaces(kEast)->egress, 5_Gbps);
  EXPECT_TRUE(scenario.interfaces(kEast)->ingress.is_unlimited());
  EXPECT_EQ(scenario.interfaces(kWest), nullptr);
}

}  // namespace
}  // namespace longhaul::scenario
