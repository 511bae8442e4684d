#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Options = std::vector<std::string>;

Scenario with(const Options& set) { return parse_scenario(joined(kLines), "s.toml", set); }

const Link& west_east(const Scenario& scenario) {
  return *scenario.link(DatacenterId{0}, DatacenterId{1});
}
const Link& east_west(const Scenario& scenario) {
  return *scenario.link(DatacenterId{1}, DatacenterId{0});
}

TEST(Overrides, SetAndAddKeys) {
  const Scenario scenario = with({"run.seed=3", "costs.forward=20ms", "parallel.microbatches = 8",
                                  "scenario.name=other name", "memory.recompute=true"});
  EXPECT_EQ(scenario.run.seed, 3U);
  EXPECT_THAT(scenario.costs.forward, Each(20ms));
  EXPECT_EQ(scenario.name, "other name");
  EXPECT_TRUE(scenario.memory.recompute);
}

TEST(Overrides, TakeNumbersAsPeopleTypeThem) {
  EXPECT_EQ(west_east(with({"link.latency_ratio=.25"})).latency, 10ms);
  EXPECT_EQ(west_east(with({"link.latency_ratio=1."})).latency, 40ms);
  EXPECT_EQ(with({"run.seed=1_000"}).run.seed, 1000U);
}

TEST(Overrides, ReachIntoListsAndTables) {
  const Scenario scenario = with({"costs.forward=[\"1ms\", \"2ms\"]", "costs.forward.1=7ms",
                                  "run.stragglers.1=1.5", "datacenter.east.gpus=4"});
  EXPECT_THAT(scenario.costs.forward, ElementsAre(1ms, 7ms));
  EXPECT_THAT(scenario.run.stragglers, ElementsAre(1.0, 1.5));
  EXPECT_EQ(scenario.datacenters[1].gpus, 4);
  EXPECT_EQ(scenario.datacenters[0].gpus, std::nullopt);
}

TEST(Overrides, WithoutANameAddressAll) {
  const Scenario scenario = with({"datacenter.gpus=4", "link.latency=3ms"});
  EXPECT_EQ(scenario.datacenters[0].gpus, 4);
  EXPECT_EQ(scenario.datacenters[1].gpus, 4);
  EXPECT_EQ(west_east(scenario).latency, 3ms);
  EXPECT_EQ(east_west(scenario).latency, 3ms);
}

TEST(Overrides, ReplaceTheOtherWaysToSayTheSame) {
  const Scenario scenario = with({"link.latency_ratio=0.25", "link.transfer_ratio=2"});
  EXPECT_EQ(west_east(scenario).latency, 10ms);
  EXPECT_EQ(1_MiB / west_east(scenario).bandwidth, 80ms);
  const Scenario again = with(
      {"link.latency_ratio=0.25", "link.rtt=8ms", "link.transfer_ratio=2", "link.bandwidth=5Gbps"});
  EXPECT_EQ(west_east(again).latency, 4ms);
  EXPECT_EQ(west_east(again).bandwidth, 5_Gbps);
  EXPECT_EQ(west_east(with({"link.preset=atlas-30ms"})).latency, 30ms);
}

TEST(Overrides, NameALinkByItsEnds) {
  for (const char* option : {"link.west-east.latency=3ms", "link.east-west.latency=3ms"}) {
    EXPECT_EQ(west_east(with({option})).latency, 3ms) << option;
    EXPECT_EQ(east_west(with({option})).latency, 3ms) << option;
  }
  std::vector<std::string> lines = kLines;
  lines[13] =
      "from = \"west\"\nto = \"east\"\nlatency = \"1ms\"\n[[link]]\nfrom = \"east\"\nto = "
      "\"west\"";
  const Options one{"link.west-east.latency=3ms"};
  const Scenario scenario = parse_scenario(joined(lines), "s.toml", one);
  EXPECT_EQ(west_east(scenario).latency, 3ms);
  EXPECT_EQ(east_west(scenario).latency, 10ms);
}

TEST(Overrides, NamesMayHoldDashes) {
  std::vector<std::string> lines = kLines;
  lines[7] = "name = \"us-west-2\"";
  lines[10] = "name = \"eu-1\"";
  lines[13] = "between = [\"eu-1\", \"us-west-2\"]";
  const Options one{"link.us-west-2-eu-1.latency=3ms"};
  EXPECT_EQ(west_east(parse_scenario(joined(lines), "s.toml", one)).latency, 3ms);
}

TEST(Overrides, OneLinkOutOfAllGetsItsOwnEntry) {
  std::vector<std::string> lines = kLines;
  lines[11] = "stages = [1]\n[[datacenter]]\nname = \"north\"\nstages = [2]";
  lines[4] = "stages = 3";
  lines[13] = "between = \"all\"";
  const Options set{"link.all.latency=5ms", "link.north-west.latency=9ms"};
  const Scenario scenario = parse_scenario(joined(lines), "s.toml", set);
  EXPECT_EQ(west_east(scenario).latency, 5ms);
  EXPECT_EQ(scenario.link(DatacenterId{0}, DatacenterId{2})->latency, 9ms);
  EXPECT_EQ(scenario.link(DatacenterId{2}, DatacenterId{0})->latency, 9ms);
  EXPECT_EQ(scenario.links.size(), 6U);
}

TEST(Overrides, LaterOnesWinAndAllStandInTheText) {
  const Scenario scenario = with({"run.seed=3", "run.seed=4"});
  EXPECT_EQ(scenario.run.seed, 4U);
  EXPECT_EQ(scenario.text, joined(kLines) + "# --set run.seed=3\n# --set run.seed=4\n");
  EXPECT_EQ(parse_scenario(scenario.text, "again.toml").run.seed, 1U);
}

TEST(Overrides, AreCheckedLikeTheFileAndNamedInTheComplaint) {
  const auto said = [](const std::string& option) { return complaint(joined(kLines), {option}); };
  EXPECT_EQ(said("link.latencey=2"),
            "--set link.latencey=2: unknown key \"latencey\" (in link). Did you mean \"latency\"?");
  EXPECT_THAT(said("lnk.latency=2"), AllOf(StartsWith("--set lnk.latency=2: unknown key \"lnk\""),
                                           HasSubstr("Did you mean \"link\"?")));
  EXPECT_THAT(said("link.latency=2"), HasSubstr("it has no unit"));
  EXPECT_THAT(said("link.west-est.latency=2ms"), HasSubstr("no [[link]] is called \"west-est\""));
  EXPECT_THAT(said("datacenter.est.gpus=2"), HasSubstr("no [[datacenter]] is called \"est\""));
  EXPECT_THAT(said("node.gpus=2"), HasSubstr("there is no [[node]]"));
  EXPECT_THAT(said("run.seed"), HasSubstr("there is no \"=\""));
  EXPECT_THAT(said("run=3"), HasSubstr("no value"));
  EXPECT_THAT(said("=3"), HasSubstr("no path"));
  EXPECT_THAT(said("run..seed=3"), HasSubstr("no path"));
  EXPECT_THAT(said("run.seed.x=3"), StartsWith("--set run.seed.x=3: run.seed"));
  EXPECT_THAT(said("costs.forward.3=1ms"), HasSubstr("it is no table"));
  EXPECT_THAT(said("datacenter.west.stages.4=1"), HasSubstr("no element"));
  EXPECT_THAT(said("run.seed=3\n[x]"), HasSubstr("control character"));
  EXPECT_THAT(said("datacenter.west.stages=[0,1]"), HasSubstr("placed twice"));
  EXPECT_THAT(said("run.seed=" + std::string(3000, '[')), HasSubstr("wrong type"));
}

}  // namespace
}  // namespace longhaul::scenario
