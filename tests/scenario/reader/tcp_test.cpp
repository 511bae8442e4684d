#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"
#include "scenario/reader/link_values.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string complaint_about(const std::string& lines, const std::vector<std::string>& set = {}) {
  return complaint(with_line(0, lines), set);
}

TEST(Tcp, OneConnectionIsAtlasTable1Exactly) {
  EXPECT_EQ(connection_rate(10ms), 1220_Mbps);
  EXPECT_EQ(connection_rate(20ms), 600_Mbps);
  EXPECT_EQ(connection_rate(30ms), 396_Mbps);
  EXPECT_EQ(connection_rate(40ms), 293_Mbps);
}

TEST(Tcp, OtherLatenciesGoByTheWindow) {
  EXPECT_EQ(connection_rate(5ms), 2440_Mbps);                          // 12.2 Mbit in 5 ms
  EXPECT_DOUBLE_EQ(connection_rate(80ms).bits_per_second(), 146.5e6);  // 11.72 Mbit in 80 ms
  EXPECT_DOUBLE_EQ(connection_rate(25ms).bits_per_second(), 11.94e6 / 0.025);
  EXPECT_TRUE(connection_rate(0ms).is_unlimited());
  EXPECT_EQ(connection_rate(10ms, Bytes{1'250'000}), 1_Gbps);
}

TEST(Tcp, AConnectionIsSlowerTheFartherItGoes) {
  Bandwidth before = Bandwidth::unlimited();
  for (Duration latency = 100us; latency < 100ms; latency += 100us) {
    EXPECT_LT(connection_rate(latency), before) << latency.count();
    before = connection_rate(latency);
  }
}

TEST(Tcp, AutoIsTheLeastThatReachesTheCap) {
  EXPECT_EQ(connections_to_cap(1220_Mbps, kNodeCap), 5);  // 4 reach 4.88 Gbps
  EXPECT_EQ(connections_to_cap(600_Mbps, kNodeCap), 9);
  EXPECT_EQ(connections_to_cap(396_Mbps, kNodeCap), 13);
  EXPECT_EQ(connections_to_cap(293_Mbps, kNodeCap), 18);
  EXPECT_EQ(connections_to_cap(1_Gbps, 5_Gbps), 5);
  EXPECT_EQ(connections_to_cap(6_Gbps, 5_Gbps), 1);
  EXPECT_EQ(connections_to_cap(Bandwidth{1}, 5_Gbps), std::nullopt);
  EXPECT_EQ(connections_to_cap(1_Gbps, Bandwidth::unlimited()), std::nullopt);
}

TEST(Tcp, ConnectionsGrowTheLinkUpToTheCap) {
  EXPECT_EQ(link_with("connections = 1").bandwidth, 1220_Mbps);
  EXPECT_EQ(link_with("connections = 4").bandwidth, 4880_Mbps);
  EXPECT_EQ(link_with("connections = 5").bandwidth, 5_Gbps);
  EXPECT_EQ(link_with("connections = 500").bandwidth, 5_Gbps);
  EXPECT_EQ(link_with("connections = 500\nnode_cap = \"20Gbps\"").bandwidth, 20_Gbps);
  EXPECT_EQ(link_with("connections = 10\nnode_cap = \"unlimited\"").bandwidth, 12200_Mbps);
  const Link link = link_with("connections = \"auto\"");
  EXPECT_EQ(link.bandwidth, 5_Gbps);
  ASSERT_TRUE(link.connections.has_value());
  EXPECT_EQ(link.connections->count, 5);
  EXPECT_EQ(link.connections->each, 1220_Mbps);
  EXPECT_EQ(link.connections->cap, 5_Gbps);
  EXPECT_FALSE(link_with("bandwidth = \"1Gbps\"").connections.has_value());
}

TEST(Tcp, TheRateFollowsTheLatency) {
  EXPECT_EQ(link_with("connections = 2", {"link.latency=40ms"}).bandwidth, 586_Mbps);
  EXPECT_EQ(link_with("connections = \"auto\"", {"link.rtt=80ms"}).connections->count, 18);
  EXPECT_EQ(link_with("connections = 1", {"link.west-east.latency_ratio=0.5"}).bandwidth,
            600_Mbps);  // of 40 ms
  EXPECT_EQ(link_with("connections = 1\nwindow = \"2.5MB\"", {"link.latency=20ms"}).bandwidth,
            1_Gbps);
}

TEST(Tcp, OverridesReplaceRatesByConnectionsAndBack) {
  EXPECT_EQ(link_with("bandwidth = \"9Gbps\"", {"link.connections=1"}).bandwidth, 1220_Mbps);
  EXPECT_EQ(link_with("transfer_ratio = 1", {"link.connections=auto"}).bandwidth, 5_Gbps);
  EXPECT_EQ(link_with("connections = 3\nwindow = \"1MB\"", {"link.bandwidth=2Gbps"}).bandwidth,
            2_Gbps);
  EXPECT_EQ(link_with("connections = 3", {"link.window=1MB"}).connections->each, 800_Mbps);
  EXPECT_EQ(link_with("connections = 9", {"link.node_cap=1Gbps"}).bandwidth, 1_Gbps);
  EXPECT_EQ(link_with("connections = 9", {"link.preset=atlas-40ms"}).bandwidth, 293_Mbps);
  EXPECT_EQ(link_with("aggregate = \"100Gbps\"", {"link.aggregate=20Gbps"}).aggregate, 20_Gbps);
}

TEST(Tcp, MisuseIsRefused) {
  EXPECT_THAT(complaint_about("connections = 2\nbandwidth = \"1Gbps\""),
              AllOf(StartsWith("s.toml:16:15: "), HasSubstr("both given")));
  EXPECT_THAT(complaint_about("connections = 2\ntransfer_ratio = 1"), HasSubstr("both given"));
  EXPECT_THAT(complaint_about("window = \"1MB\""), HasSubstr("link.window has no effect"));
  EXPECT_THAT(complaint_about("node_cap = \"1Gbps\""), HasSubstr("link.node_cap has no effect"));
  EXPECT_THAT(complaint_about("connections = 0"), HasSubstr("out of range"));
  EXPECT_THAT(complaint_about("connections = 1000000000"), HasSubstr("out of range"));
  EXPECT_THAT(complaint_about("connections = \"many\""), HasSubstr("is unknown"));
  EXPECT_THAT(complaint_about("connections = 1\nwindow = \"0B\""), HasSubstr("is empty"));
  EXPECT_THAT(complaint_about("connections = \"auto\"\nwindow = \"1B\""),
              HasSubstr("finds no number of connections"));
  EXPECT_THAT(complaint_about("connections = \"auto\"\nnode_cap = \"unlimited\""),
              HasSubstr("finds no number of connections"));
}

TEST(Tcp, PlayedSlowlyConnectionsSlowDownToo) {
  const std::string lines =
      "connections = 2\naggregate = \"8Gbps\"\n[[node]]\ndatacenter = "
      "\"east\"\ninternal = \"100Gbps\"\n[run]\ntime_scale = 2\n";
  const Scenario played = parse_scenario(with_line(0, lines), "s.toml").as_played();
  const Link& link = *played.link(kWest, kEast);
  EXPECT_EQ(link.bandwidth, 1220_Mbps);
  EXPECT_EQ(link.aggregate, 4_Gbps);
  EXPECT_EQ(link.connections->each, 610_Mbps);
  EXPECT_EQ(together(*link.connections), link.bandwidth);
  EXPECT_EQ(played.interfaces(kEast)->internal, 50_Gbps);
}

}  // namespace
}  // namespace longhaul::scenario
