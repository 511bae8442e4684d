// Keys of datacenters, nodes and cells beyond their placement.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::HasSubstr;

Scenario parse_sites(const std::string& text, const std::vector<std::string>& set = {}) {
  return parse_scenario(text, "s.toml", set);
}

TEST(Sites, DatacentersHavePricesAndNodes) {
  const Scenario scenario = parse_sites(with_line(
      12, "stages = [1]\ngpus_per_node = 8\nprice = 2.5\negress_price = 0.02\ngpus = 64"));
  const Datacenter& east = scenario.datacenters[1];
  EXPECT_EQ(east.gpus_per_node, 8);
  EXPECT_EQ(east.price, 2.5);
  EXPECT_EQ(east.egress_price, 0.02);
  EXPECT_EQ(scenario.datacenters[0].price, std::nullopt);
  const Scenario set = parse_sites(
      joined(kLines), {"datacenter.price=3", "datacenter.east.price=4",
                       "datacenter.gpus_per_node=2", "datacenter.west.egress_price=0.01"});
  EXPECT_EQ(set.datacenters[0].price, 3);
  EXPECT_EQ(set.datacenters[1].price, 4);
  EXPECT_EQ(set.datacenters[0].gpus_per_node, 2);
  EXPECT_EQ(set.datacenters[0].egress_price, 0.01);
  EXPECT_THAT(complaint(joined(kLines), {"datacenter.price=-1"}), HasSubstr("out of range"));
  EXPECT_THAT(complaint(joined(kLines), {"datacenter.gpus_per_node=0"}), HasSubstr("out of range"));
}

TEST(Sites, NodesTakeThoseOfACluster) {
  const std::string node = "\n[[node]]\ndatacenter = \"east\"\npreset = \"centauri-a\"\n";
  const Scenario scenario = parse_sites(with_line(0, node));
  EXPECT_EQ(scenario.interfaces(kEast)->gpus, 8);
  EXPECT_EQ(scenario.interfaces(kEast)->internal, 200_Gbps);
  EXPECT_EQ(scenario.interfaces(kEast)->device, Bandwidth{8 * 230e9});
  const Scenario other = parse_sites(with_line(0, node + "internal = \"1Gbps\""));
  EXPECT_EQ(other.interfaces(kEast)->internal, 1_Gbps);
  EXPECT_THAT(complaint(with_line(0, node), {"node.preset=centauri-c"}),
              HasSubstr("Did you mean \"centauri-"));
}

TEST(Sites, NodesTakeTheirGpusFromTheDatacenter) {
  const std::string node = "[[node]]\ndatacenter = \"east\"\ninternal = \"100Gbps\"\n";
  const std::string text = with_line(12, "stages = [1]\ngpus_per_node = 8") + node;
  EXPECT_EQ(parse_sites(text).interfaces(kEast)->gpus, 8);
  EXPECT_EQ(parse_sites(text).interfaces(kEast)->internal, 100_Gbps);
  EXPECT_EQ(parse_sites(text, {"node.east.gpus=2"}).interfaces(kEast)->gpus, 2);
  EXPECT_EQ(parse_sites(text, {"node.internal=50Gbps"}).interfaces(kEast)->internal, 50_Gbps);
  EXPECT_EQ(parse_sites(joined(kLines) + node).interfaces(kEast)->gpus, 1);
  const std::string model = "[model]\npreset = \"m70\"\n";  // a rank is 4 GPUs
  EXPECT_EQ(parse_sites(text + model).interfaces(kEast)->gpus, 2);
}

TEST(Sites, CellsAreCountedOrLeftToTheLinks) {
  EXPECT_EQ(parse_sites(joined(kLines)).parallel.cell, std::nullopt);
  EXPECT_EQ(parse_sites(joined(kLines), {"parallel.cell=3"}).parallel.cell, 3);
  EXPECT_EQ(parse_sites(joined(kLines), {"parallel.cell=auto"}).parallel.cell, std::nullopt);
  EXPECT_THAT(complaint(joined(kLines), {"parallel.cell=0"}), HasSubstr("out of range"));
  EXPECT_THAT(complaint(joined(kLines), {"parallel.cell=256"}), HasSubstr("out of range"));
  EXPECT_THAT(complaint(joined(kLines), {"parallel.cell=few"}), HasSubstr("is unknown"));
  EXPECT_EQ(
      parse_sites(joined(kLines), {"parallel.gradient_sync=ring-rate"}).parallel.gradient_sync,
      GradientSync::ring_rate);
}

TEST(Sites, JitterPresetsAreTheFluctuationOfAtlasFigure7) {
  const auto jitter = [](const std::string& name) {
    return parse_sites(joined(kLines), {"link.jitter=" + name}).link(kWest, kEast)->jitter;
  };
  EXPECT_EQ(jitter("atlas-a-b").transfer, 0.008);
  EXPECT_EQ(jitter("atlas-a-c").transfer, 0.023);
  EXPECT_EQ(jitter("atlas-a-c").latency, 0);
  EXPECT_EQ(jitter("atlas-a-c").correlation, 1);
  EXPECT_THAT(complaint(joined(kLines), {"link.jitter=atlas-a-d"}),
              HasSubstr("Did you mean \"atlas-a-b\"?"));
}

TEST(Sites, TakesPortsAndLatenciesInsideADatacenter) {
  const std::string node =
      "[[node]]\ndatacenter = \"east\"\ngpus = 2\ndevice = \"300GB/s\"\ndevice_latency = \"2us\"\n"
      "internal = \"25GB/s\"\ninternal_latency = \"5us\"\n";
  const Scenario scenario = parse_sites(joined(kLines) + node);
  const NodeInterfaces& east = *scenario.interfaces(kEast);
  EXPECT_EQ(east.device.bits_per_second(), 2400e9);
  EXPECT_EQ(east.device_latency, 2us);
  EXPECT_EQ(east.internal_latency, 5us);
  const NodeInterfaces slowed =
      *parse_sites(joined(kLines) + node, {"run.time_scale=2"}).as_played().interfaces(kEast);
  EXPECT_EQ(slowed.device.bits_per_second(), 1200e9);
  EXPECT_EQ(slowed.device_latency, 4us);
  EXPECT_EQ(slowed.internal_latency, 10us);
  EXPECT_EQ(parse_sites(joined(kLines) + node, {"node.east.device_latency=9us"})
                .interfaces(kEast)
                ->device_latency,
            9us);
}

TEST(Sites, RefusesALevelWithALatencyAndNoRate) {
  const std::string node = "[[node]]\ndatacenter = \"east\"\n";
  EXPECT_THAT(
      complaint(joined(kLines) + node + "device_latency = \"2us\"\n"),
      HasSubstr("node.device_latency = \"2us\" has no rate beside it (a level without one takes no "
                "time). Give node.device as well."));
  EXPECT_THAT(complaint(joined(kLines) + node + "internal_latency = \"2us\"\n"),
              HasSubstr("Give node.internal as well."));
}

TEST(Sites, RefusesPortsBesideALinkOfTheDatacenterToItself) {
  const std::string link = "[[link]]\nbetween = [\"east\", \"east\"]\nlatency = \"1ms\"\n";
  const std::string node = "[[node]]\ndatacenter = \"east\"\ndevice = \"300GB/s\"\n";
  EXPECT_THAT(complaint(joined(kLines) + link + node),
              HasSubstr("node.device and [[link]] between = [\"east\", \"east\"] are both given"));
}

}  // namespace
}  // namespace longhaul::scenario
