// The scenarios of benchmarks/scenarios are what their comments say.
#include "support/shipped.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/presets.hpp"
#include "scenario/reader/load.hpp"

namespace longhaul {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

const std::filesystem::path kFolder = testing::kShippedScenarios;

Scenario shipped(const std::string& name, const std::vector<std::string>& set = {}) {
  return scenario::load_scenario(kFolder / (name + ".toml"), set);
}

/// How many neighbours in a pipeline lie in different datacenters.
int crossings(const Scenario& scenario) {
  int count = 0;
  for (int stage = 0; stage + 1 < scenario.parallel.stages; ++stage) {
    if (scenario.datacenter_of(scenario.rank(ReplicaId{0}, DeviceId{stage})) !=
        scenario.datacenter_of(scenario.rank(ReplicaId{0}, DeviceId{stage + 1})))
      ++count;
  }
  return count;
}

TEST(Shipped, EveryFileLoadsUnderItsOwnName) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator{kFolder}) {
    if (entry.path().extension() != ".toml") continue;
    const Scenario scenario =
        scenario::load_scenario(entry.path(), {}, scenario::Placing::optional);
    EXPECT_EQ(scenario.name, entry.path().stem().string());
    names.insert(scenario.name);
  }
  EXPECT_THAT(names, ::testing::IsSupersetOf({"m70-2dc", "m70-4dc", "m70-16stage", "m8-2dc",
                                              "crosspipe-fig6", "crosspipe-fig15", "atlas-testbed",
                                              "dp-2dc", "m70-2dc-hetero"}));
}

// Centauri, figures 8 to 10: 2 and 6 nodes of 8 GPUs, 25 Gb/s of a node's port for each.
TEST(Shipped, TheOnesOfCentauriFillNodesOfItsCluster) {
  for (const auto& [name, nodes] : {std::pair{"centauri-fsdp", 2},
                                    {"centauri-dp", 2},
                                    {"centauri-fsdp-dp", 6},
                                    {"centauri-tp-pp-dp", 6},
                                    {"centauri-scale", 32},
                                    {"centauri-wan", 8}}) {
    const Scenario scenario = shipped(name);
    const NodeInterfaces& node = scenario.nodes.front();
    EXPECT_EQ(scenario.ranks(), 8 * nodes) << name;
    EXPECT_EQ(node.gpus, 8);
    EXPECT_EQ(node.internal.bits_per_second() / node.gpus, 25e9);
  }
  EXPECT_EQ(shipped("centauri-fsdp-dp").parallel.shard, 16);
  EXPECT_EQ(shipped("centauri-fsdp-dp", {"parallel.shard=8"}).parallel.shard, 8);
}

TEST(Shipped, CentauriRealDividesASmallModelInEveryWay) {
  const Scenario scenario = shipped("centauri-real");
  EXPECT_EQ(scenario.ranks(), 16);
  EXPECT_EQ(scenario.parallel.tensor, 2);
  EXPECT_EQ(scenario.parallel.stages, 2);
  EXPECT_EQ(scenario.parallel.replicas, 4);
  EXPECT_EQ(scenario.parallel.shard, 2);
  EXPECT_TRUE(scenario.parallel.sharding.sequence_parallel);
  EXPECT_GT(scenario.model->vocabulary, 0);
}

// A stage's 16 ranks lie on two nodes; other divisions of 48 load with the layers that they divide.
TEST(Shipped, CentauriTpPpDpIsLaidOutAsMegatronDoes) {
  const Scenario scenario = shipped("centauri-tp-pp-dp");
  for (const ReplicaId replica : scenario.replica_ids())
    for (int tensor = 0; tensor < 4; ++tensor)
      EXPECT_EQ(number(scenario.rank(replica, DeviceId{1}, tensor)) / 16, 1);
  EXPECT_EQ(
      shipped("centauri-tp-pp-dp", {"parallel.stages=2", "parallel.replicas=6", "model.layers=32"})
          .ranks(),
      48);
}

TEST(Shipped, TheWeatherOfWeather2dcBeginsCalm) {
  const Scenario scenario = shipped("weather-2dc");
  for (const Link& link : scenario.links) {
    ASSERT_NE(link.weather.trace, nullptr);
    // Schedules are made for the values with which the trace begins.
    EXPECT_EQ(link.weather.trace->states.front().latency, link.latency);
    EXPECT_EQ(link.weather.trace->states.front().bandwidth, link.bandwidth);
    EXPECT_GE(link.weather.trace->states.size(), 2U);
    EXPECT_EQ(link.weather.outages.size(), 1U);
    EXPECT_GT(link.weather.loss.probability, 0);
    EXPECT_TRUE(link.jitter.any());
  }
}

TEST(Shipped, RegionsSetTheLinksOfLinkRegions) {
  const Scenario scenario = shipped("link-regions");
  ASSERT_EQ(scenario.links.size(), 6U);
  const Link& west = *scenario.link(DatacenterId{0}, DatacenterId{1});
  ASSERT_TRUE(west.connections.has_value());
  EXPECT_EQ(west.bandwidth, 5_Gbps);
  EXPECT_EQ(west.jitter.transfer, 0.023);
  EXPECT_EQ(scenario.link(DatacenterId{1}, DatacenterId{2})->aggregate, 40_Gbps);
  EXPECT_FALSE(scenario.link(DatacenterId{0}, DatacenterId{2})->connections.has_value());
  EXPECT_EQ(scenario.interfaces(DatacenterId{0})->gpus, 4);  // 8 GPUs, 2 of a rank
}

TEST(Shipped, M70HasTheMeasuredCostsOfCrossPipe) {
  for (const char* name : {"m70-2dc", "m70-4dc"}) {
    const Scenario scenario = shipped(name);
    EXPECT_EQ(scenario.parallel.stages, 8);
    EXPECT_EQ(scenario.parallel.microbatches, 16);
    EXPECT_THAT(scenario.costs.forward, Each(38ms));
    EXPECT_THAT(scenario.costs.backward, Each(67ms));
    EXPECT_THAT(scenario.costs.dgrad, Each(35ms));
    EXPECT_THAT(scenario.costs.wgrad, Each(35ms));
    EXPECT_THAT(scenario.costs.recompute, Each(38ms));
    EXPECT_THAT(scenario.costs.message, Each(64_MiB));
    for (const Link& link : scenario.links) {
      EXPECT_EQ(link.latency, 9'500'000ns);
      EXPECT_EQ(64_MiB / link.bandwidth, 9'500'000ns);
    }
  }
  EXPECT_EQ(crossings(shipped("m70-2dc")), 1);
  EXPECT_EQ(crossings(shipped("m70-4dc")), 3);
}

TEST(Shipped, HeteroHasMoreLayersWhereDevicesAreFaster) {
  const Scenario balanced = shipped("m70-2dc-hetero");
  EXPECT_THAT(balanced.layers, ElementsAre(10, 10, 10, 10, 6, 6, 6, 6));
  EXPECT_EQ(balanced.costs.forward[0], 31'666'667ns);  // 10 / 8 * 38 ms / 1.5
  EXPECT_EQ(balanced.costs.forward[7], 28'500'000ns);
  const Scenario even = shipped("m70-2dc-hetero", {"model.layers_per_stage=even"});
  EXPECT_EQ(even.costs.forward[0], 25'333'333ns);
  EXPECT_EQ(even.costs.forward[7], 38ms);
  for (const Link& link : even.links) {
    EXPECT_EQ(link.latency, 9'500'000ns);
    EXPECT_NEAR(static_cast<double>((64_MiB / link.bandwidth).count()), 9.5e6, 100);
  }
}

TEST(Shipped, TheCellsOfTable5AreTwoOverrides) {
  const Scenario cell = shipped("m70-4dc", {"link.latency_ratio=2", "link.transfer_ratio=0"});
  for (const Link& link : cell.links) {
    EXPECT_EQ(link.latency, 76ms);
    EXPECT_TRUE(link.bandwidth.is_unlimited());
  }
  const Scenario one = shipped("m70-4dc", {"link.west-north.latency_ratio=2"});
  EXPECT_EQ(one.link(DatacenterId{1}, DatacenterId{0})->latency, 76ms);
  EXPECT_EQ(one.link(DatacenterId{1}, DatacenterId{2})->latency, 9'500'000ns);
}

TEST(Shipped, SixteenStages) {
  const Scenario m70 = shipped("m70-16stage");
  EXPECT_EQ(m70.ranks(), 16);
  EXPECT_THAT(m70.costs.forward, Each(19ms));
  const Scenario figure15 = shipped("crosspipe-fig15");
  EXPECT_EQ(figure15.ranks(), 16);
  EXPECT_EQ(figure15.parallel.microbatches, 32);
  EXPECT_EQ(2 * figure15.links[0].latency, 3 * figure15.largest_forward());
  EXPECT_TRUE(figure15.links[0].bandwidth.is_unlimited());
}

TEST(Shipped, Figure6HasItsLatencyOnTheMiddleBoundary) {
  const Scenario scenario = shipped("crosspipe-fig6");
  EXPECT_THAT(scenario.placement,
              ElementsAre(DatacenterId{0}, DatacenterId{0}, DatacenterId{1}, DatacenterId{1}));
  EXPECT_EQ(scenario.parallel.microbatches, 8);
  EXPECT_THAT(scenario.costs.backward, Each(2 * scenario.largest_forward()));
  EXPECT_EQ(scenario.links[0].latency, scenario.largest_forward());
}

TEST(Shipped, AtlasHasNodesOf5GbpsAndLocalGradients) {
  for (const std::string model : {"gpt-a", "gpt-b"}) {
    const Scenario scenario = shipped("atlas-testbed", {"model.preset=" + model});
    EXPECT_EQ(scenario.ranks(), 12);
    EXPECT_EQ(scenario.datacenters.size(), 3U);
    ASSERT_EQ(scenario.nodes.size(), 3U);
    for (const NodeInterfaces& node : scenario.nodes) {
      EXPECT_EQ(node.egress, 5_Gbps);
      EXPECT_EQ(node.ingress, 5_Gbps);
    }
    for (int stage = 0; stage < 4; ++stage) {
      EXPECT_EQ(scenario.datacenter_of(scenario.rank(ReplicaId{0}, DeviceId{stage})),
                scenario.datacenter_of(scenario.rank(ReplicaId{2}, DeviceId{stage})));
    }
  }
  const Scenario one_connection = shipped("atlas-testbed", {"link.all.preset=atlas-10ms"});
  EXPECT_EQ(one_connection.link(DatacenterId{0}, DatacenterId{1})->bandwidth, 1220_Mbps);
}

TEST(Shipped, ReplicasOfDp2dcLieApart) {
  const Scenario scenario = shipped("dp-2dc");
  EXPECT_EQ(crossings(scenario), 0);
  EXPECT_NE(scenario.datacenter_of(scenario.rank(ReplicaId{0}, DeviceId{0})),
            scenario.datacenter_of(scenario.rank(ReplicaId{1}, DeviceId{0})));
  EXPECT_EQ(scenario.parallel.gradient_sync, GradientSync::zero1);
}

// StellaTrain 5: three nodes of 2 GPUs in a lab and one elsewhere.
TEST(Shipped, TheOnesOfStellaTrainHaveItsGpus) {
  const auto names = [](const std::vector<std::string>& remote) {
    std::vector<std::string> gpus{"rtx4090", "rtx4090", "rtx4090", "rtx4090", "rtx3090", "rtx3090"};
    gpus.insert(gpus.end(), remote.begin(), remote.end());
    return gpus;
  };
  const Scenario cloud = shipped("stella-multicloud");
  EXPECT_EQ(cloud.gpus_of_ranks(), names({"v100", "v100"}));
  const LinkTrace& trace = *cloud.links.front().weather.trace;
  double sum = 0, least = 1e12, most = 0;
  for (const LinkState& state : trace.states) {
    sum += state.bandwidth.bits_per_second();
    least = std::min(least, state.bandwidth.bits_per_second());
    most = std::max(most, state.bandwidth.bits_per_second());
  }
  EXPECT_NEAR(sum / static_cast<double>(trace.states.size()), 115.7e6, 0.1e6);
  EXPECT_GE(least, 50e6);
  EXPECT_LE(most, 600e6);
  for (const char* name : {"stella-8gpu", "stella-gpt2"})
    EXPECT_EQ(shipped(name).gpus_of_ranks(), names({"rtx2080ti", "rtx2080ti"})) << name;
  const std::vector<std::string> gpus = shipped("stella-fig14").gpus_of_ranks();
  EXPECT_EQ(gpus.size(), 8U);
  EXPECT_EQ(std::ranges::count(gpus, "rtx4090"), 4);
  EXPECT_EQ(std::ranges::count(gpus, "rtx2080ti"), 4);
  EXPECT_EQ(shipped("stella-8gpu").costs_of(ReplicaId{0}).weights[0], Bytes{352'000'000});
  const Scenario adapt = shipped("stella-adapt");
  EXPECT_EQ(adapt.gpus_of_ranks(),
            (std::vector<std::string>{"rtx4090", "rtx4090", "rtx2080ti", "rtx2080ti"}));
  EXPECT_EQ(adapt.train.adapt.every, 10);
  const Scenario on_ranks = shipped("train-adapt");
  EXPECT_EQ(on_ranks.gpus_of_ranks(), adapt.gpus_of_ranks());
  EXPECT_EQ(on_ranks.costs_of(ReplicaId{2}).forward, adapt.costs_of(ReplicaId{2}).forward);
  const Scenario eight = shipped("train-8gpu"), published = shipped("stella-8gpu");
  EXPECT_EQ(eight.gpus_of_ranks(), published.gpus_of_ranks());
  EXPECT_EQ(eight.costs_of(ReplicaId{6}).forward, published.costs_of(ReplicaId{6}).forward);
  EXPECT_EQ(4 * eight.train.costs.compress[0], 12 * published.train.costs.compress[0]);
}

TEST(Shipped, ReplicasOfTrain2dcTrainASmallModelInTwoSites) {
  const Scenario scenario = shipped("train-2dc");
  EXPECT_EQ(scenario.parallel.replicas, 4);
  EXPECT_EQ(scenario.train.target, (TrainingTarget{TargetKind::loss, 2.3}));
  // A ring of 4: six steps of a quarter of its f32 gradients take 100 times the blocks.
  const Duration blocks = scenario.costs.forward[0] + scenario.costs.backward[0];
  const Bytes gradients = scenario.costs.weights[0] * 2;
  const Duration ring = gradients * 6 / scenario.links.front().bandwidth / 4;
  const double ratio = static_cast<double>(ring.count()) / static_cast<double>(blocks.count());
  EXPECT_NEAR(ratio, 100, 5);
  EXPECT_EQ(crossings(shipped("train-pipeline")), 1);
}

TEST(Documentation, ShowsAScenarioThatLoadsAndEveryPreset) {
  std::ifstream stream{testing::in_checkout("docs/scenario.md")};
  const std::string page{std::istreambuf_iterator<char>{stream}, {}};
  const std::size_t begin = page.find("```toml\n");
  ASSERT_NE(begin, std::string::npos);
  const std::string example = page.substr(begin + 8, page.find("```", begin + 8) - begin - 8);
  EXPECT_EQ(scenario::parse_scenario(example, "docs/scenario.md").links.front().latency, 40ms);
  for (const scenario::ModelPreset& preset : scenario::model_presets())
    EXPECT_NE(page.find("| `" + preset.model.name + "` |"), std::string::npos);
  for (const scenario::LinkPreset& preset : scenario::link_presets())
    EXPECT_NE(page.find("`" + preset.name + "`"), std::string::npos);
}

}  // namespace
}  // namespace longhaul
