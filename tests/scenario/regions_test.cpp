#include "scenario/regions.hpp"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const std::string kHeader =
    "src_region,dst_region,rtt_min_ms,rtt_avg_ms,rtt_mdev_ms,throughput_received_bps,"
    "tcp_connections\n";
const std::string kTable = kHeader +
                           "a:one,b:two,19.9,20,0.1,4000000000,64\n"
                           "b:two,a:one,19.9,21,0.1,3000000000,64\n"
                           "a:one,c:three,99,100,0.1,2000000000,64\n";

std::string refusal_of_table(const std::string& csv) {
  try {
    (void)RegionTable::parse(csv, "t.csv");
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

/// A scenario file beside a table, both removed at the end.
class Regions : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "regions-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    std::ofstream{directory_ / "t.csv"} << kTable;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] Scenario load(const std::string& text,
                              const std::vector<std::string>& set = {}) const {
    return parse_scenario(text, (directory_ / "s.toml").string(), set);
  }
  [[nodiscard]] std::string complaint_of(const std::string& text,
                                         const std::vector<std::string>& set = {}) const {
    try {
      (void)load(text, set);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  }

  std::filesystem::path directory_;
};

/// kLines without its [[link]], in two regions of a table.
std::string in_regions(const std::string& west, const std::string& east,
                       const std::string& more = "[wan]\nregions = \"t.csv\"\n") {
  std::vector<std::string> lines(kLines.begin(), kLines.begin() + 12);
  lines[8] += "\nregion = \"" + west + "\"";
  lines[11] += "\nregion = \"" + east + "\"";
  return joined(lines) + more;
}

const std::string kOneTwo = in_regions("a:one", "b:two");

TEST_F(Regions, SetTheLinksThatNoEntryGives) {
  const Scenario scenario = load(kOneTwo);
  EXPECT_EQ(scenario.datacenters[0].region, "a:one");
  EXPECT_EQ(scenario.link(kWest, kEast)->latency, 10ms);
  EXPECT_EQ(scenario.link(kWest, kEast)->bandwidth, 4_Gbps);
  EXPECT_EQ(scenario.link(kEast, kWest)->latency, 10'500us);
  EXPECT_EQ(scenario.link(kEast, kWest)->bandwidth, 3_Gbps);
}

TEST_F(Regions, KeysOfALinkReplaceSingleValues) {
  const auto there = [&](const std::string& lines, const std::vector<std::string>& set = {}) {
    return *load(kOneTwo + "[[link]]\nbetween = [\"west\", \"east\"]\n" + lines, set)
                .link(kWest, kEast);
  };
  EXPECT_EQ(there("latency = \"40ms\"").latency, 40ms);
  EXPECT_EQ(there("latency = \"40ms\"").bandwidth, 4_Gbps);
  EXPECT_EQ(there("bandwidth = \"9Gbps\"").latency, 10ms);
  EXPECT_EQ(there("bandwidth = \"9Gbps\"").bandwidth, 9_Gbps);
  EXPECT_EQ(there("node_cap = \"1Gbps\"").bandwidth, 1_Gbps);
  EXPECT_EQ(there("node_cap = \"9Gbps\"").bandwidth, 4_Gbps);
  EXPECT_EQ(there("connections = 1").bandwidth, 1220_Mbps);
  EXPECT_EQ(there("jitter = 0.1").bandwidth, 4_Gbps);
  EXPECT_EQ(there("jitter = 0.1", {"link.latency=20ms"}).latency, 20ms);
}

TEST_F(Regions, OverridesReachLinksWithoutAnEntry) {
  EXPECT_EQ(load(kOneTwo, {"link.latency=40ms"}).link(kEast, kWest)->latency, 40ms);
  EXPECT_EQ(load(kOneTwo, {"link.latency=40ms"}).link(kEast, kWest)->bandwidth, 3_Gbps);
  const Scenario one = load(kOneTwo, {"link.west-east.bandwidth=1Gbps"});
  EXPECT_EQ(one.link(kWest, kEast)->bandwidth, 1_Gbps);
  EXPECT_EQ(one.link(kWest, kEast)->latency, 10ms);
  EXPECT_EQ(load(in_regions("a:one", "b:two", ""),
                 {"wan.regions=t.csv", "datacenter.east.region=c:three"})
                .link(kWest, kEast)
                ->latency,
            50ms);
}

TEST_F(Regions, TheOtherWayServesWhereItAloneWasMeasured) {
  const Scenario scenario = load(in_regions("c:three", "a:one"));
  EXPECT_EQ(scenario.link(kWest, kEast)->latency, 50ms);
  EXPECT_EQ(scenario.link(kWest, kEast)->bandwidth, 2_Gbps);
}

TEST_F(Regions, SitesOfOneRegionAreNear) {
  const Scenario scenario = load(in_regions("a:one", "a:one"));
  EXPECT_EQ(scenario.link(kWest, kEast)->latency, 1ms);
  EXPECT_EQ(scenario.link(kWest, kEast)->bandwidth, Bandwidth{11.3e9});
}

/// Every pair finds its link, whether an entry gives it or the table.
TEST_F(Regions, AThousandSitesHaveAMillionLinks) {
  std::string text =
      "[parallel]\nstages = 1\nreplicas = 1024\nmicrobatches = 1\n[costs]\nforward = \"1ms\"\n"
      "weights = \"1MiB\"\nmessage = \"1MiB\"\n[wan]\nregions = \"t.csv\"\n";
  for (int site = 0; site < 1024; ++site)
    text += fmt::format("[[datacenter]]\nname = \"s{0}\"\nreplicas = [{0}]\nregion = \"{1}\"\n",
                        site, site % 2 == 0 ? "a:one" : "b:two");
  text += "[[link]]\nbetween = [\"s7\", \"s900\"]\nlatency = \"7ms\"\n";
  const Scenario scenario = load(text);
  EXPECT_EQ(scenario.links.size(), 1024U * 1023U);
  EXPECT_EQ(scenario.link(DatacenterId{7}, DatacenterId{900})->latency, 7ms);
  EXPECT_EQ(scenario.link(DatacenterId{900}, DatacenterId{7})->latency, 7ms);
  EXPECT_EQ(scenario.link(DatacenterId{8}, DatacenterId{901})->latency, 10ms);
  EXPECT_EQ(scenario.link(DatacenterId{1023}, DatacenterId{1})->latency, 1ms);
  EXPECT_EQ(scenario.link(DatacenterId{5}, DatacenterId{5}), nullptr);
}

TEST_F(Regions, UnknownOnesAndPairsAreRefused) {
  EXPECT_THAT(complaint_of(in_regions("a:one", "b:twoo")),
              AllOf(HasSubstr("s.toml:14:10: datacenter.region = \"b:twoo\" is no region"),
                    HasSubstr("Did you mean \"b:two\"?")));
  EXPECT_THAT(complaint_of(in_regions("b:two", "c:three")),
              HasSubstr("there is no link from west to east"));
  EXPECT_THAT(complaint_of(in_regions("b:two", "c:three") +
                           "[[link]]\nbetween = \"all\"\nlatency = \"1ms\"\n"),
              HasSubstr("nothing was measured between b:two and c:three"));
  EXPECT_EQ(complaint_of(in_regions("b:two", "c:three") +
                         "[[link]]\nbetween = \"all\"\nlatency = \"1ms\"\nbandwidth = \"1Gbps\"\n"),
            "accepted");
  EXPECT_THAT(complaint_of(in_regions("a:one", "b:two", "[wan]\nregions = \"none.csv\"\n")),
              HasSubstr("there is no such file"));
  EXPECT_THAT(complaint_of(in_regions("a:one", "b:two", "[wan]\nregions = \"/dev/zero\"\n")),
              HasSubstr("this is no file"));
  EXPECT_THAT(complaint_of(kOneTwo, {"wan.region=x"}), HasSubstr("Did you mean \"regions\"?"));
  std::string no_message = kOneTwo;
  no_message.erase(no_message.find("message = \"1MiB\"\n"), 17);
  EXPECT_THAT(complaint_of(no_message), HasSubstr("needs costs.message"));
}

TEST_F(Regions, TheBuiltInTableServesWithoutAFile) {
  const Scenario scenario = load(in_regions("aws:us-east-1", "azure:eastus", ""));
  EXPECT_EQ(scenario.link(kWest, kEast)->latency, 949'500ns);  // 1.899 ms there and back
  EXPECT_EQ(scenario.link(kWest, kEast)->bandwidth, Bandwidth{4781672711});
  EXPECT_EQ(RegionTable::built_in().regions().size(), 8U);
  EXPECT_THAT(complaint_of(in_regions("aws:us-east-1", "azure:eastuss", "")),
              AllOf(HasSubstr("Did you mean \"azure:eastus\"?"), HasSubstr("[wan] regions")));
}

TEST(RegionTable, BadLinesAreRefusedWithTheirNumber) {
  EXPECT_THAT(refusal_of_table(""), HasSubstr("t.csv: there is no pair"));
  EXPECT_THAT(refusal_of_table(kHeader), HasSubstr("t.csv: there is no pair"));
  EXPECT_THAT(refusal_of_table("<html>\n<body>"),
              StartsWith("t.csv:1: this is no table of regions"));
  EXPECT_THAT(refusal_of_table(kTable + "a:one,b:two,1,1,1,1,64\n"),
              StartsWith("t.csv:5: a:one to b:two is there already"));
  EXPECT_THAT(refusal_of_table(kHeader + "\n# a comment\na,b,1\n"),
              StartsWith("t.csv:4: 3 values"));
  EXPECT_THAT(refusal_of_table(kHeader + "a,b,1,-1,1,1,64\n"), HasSubstr("rtt_avg_ms = \"-1\""));
  EXPECT_THAT(refusal_of_table(kHeader + "a,b,1,nan,1,1,64\n"), HasSubstr("is no measurement"));
  EXPECT_THAT(refusal_of_table(kHeader + "a,b,1,1,1,,64\n"),
              HasSubstr("throughput_received_bps = \"\""));
  EXPECT_THAT(refusal_of_table(kHeader + "\"a,b,1,1,1,1,64\n"), HasSubstr("is no region"));
  EXPECT_THAT(refusal_of_table(kHeader + "a,b,1,1,1,1e99,64\n"), HasSubstr("is no measurement"));
}

TEST(RegionTable, ReadsColumnsByNameAndLinesOfAnySystem) {
  EXPECT_NE(RegionTable::parse(kHeader + "\"a\",b,1,1,1,1,64\n", "t.csv").find("a", "b"), nullptr);
  const RegionTable table = RegionTable::parse(
      "dst_region,throughput_received_bps,rtt_avg_ms,src_region\r\nb,1e9,8,a\r\n", "t.csv");
  ASSERT_NE(table.find("a", "b"), nullptr);
  EXPECT_EQ(table.find("a", "b")->round_trip, 8ms);
  EXPECT_EQ(table.find("b", "a"), nullptr);
}

TEST(RegionTable, HostileTextsAreBounded) {
  EXPECT_THAT(refusal_of_table(std::string(5'000'000, 'a')), HasSubstr("is larger than"));
  EXPECT_LT(refusal_of_table(std::string(4'000'000, 'a')).size(), 400U);
  EXPECT_LT(refusal_of_table(std::string(4'000'000, ',')).size(), 400U);
  EXPECT_THAT(refusal_of_table(std::string(4'000'000, '\n')), HasSubstr("there is no pair"));
  EXPECT_THAT(refusal_of_table(std::string(1000, '\0')), StartsWith("t.csv:1: "));
  std::string many = kHeader;
  for (int i = 0; i < 2000; ++i) many += fmt::format("r{},s{},1,1,1,1,64\n", i, i);
  EXPECT_THAT(refusal_of_table(many), HasSubstr("more than 1000 regions"));
}

}  // namespace
}  // namespace longhaul::scenario
