// Measured levels of a network in a file that a scenario names.
#include "scenario/reader/network_file.hpp"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/reader/load.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::HasSubstr;

const char* const kLevels = R"([cluster]
ranks_of_node = 2
datacenters = ["west", "east"]
[[level]]
level = "node"
kind = "all-reduce"
latency = "3us"
rate = "8GB/s"
[[level]]
level = "datacenter"
kind = "all-reduce"
latency = "20us"
rate = "2GB/s"
[[level]]
level = "wan"
kind = "all-reduce"
latency = "11ms"
latency_interval = ["10ms", "12ms"]
rate = "0.2GB/s"
[[level]]
level = "wan"
kind = "all-gather"
latency = "12ms"
rate = "0.3GB/s"
[measured]
command = "bench_collectives"
)";

std::string scenario_with(const std::string& link, const std::string& node) {
  return "[costs]\nforward = \"1ms\"\nmessage = \"1MB\"\n[parallel]\nstages = 4\n"
         "microbatches = 2\n[network]\nfile = \"levels.toml\"\n"
         "[[datacenter]]\nname = \"west\"\nstages = [0, 1]\n"
         "[[datacenter]]\nname = \"east\"\nstages = [2, 3]\n"
         "[[link]]\nbetween = [\"west\", \"east\"]\n" +
         link + "[[node]]\ndatacenter = \"west\"\ngpus = 2\n" + node;
}

class NetworkFiles : public ::testing::Test {
protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "levels-XXXXXX").string();
    directory_ = mkdtemp(name.data());
    write("levels.toml", kLevels);
    write("s.toml", scenario_with("", ""));
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream{directory_ / name} << text;
  }
  void write_levels(const std::string& old_text, const std::string& new_text) const {
    std::string text = kLevels;
    const std::size_t at = text.find(old_text);
    ASSERT_NE(at, std::string::npos);
    write("levels.toml", text.replace(at, old_text.size(), new_text));
  }
  [[nodiscard]] Scenario load(const std::vector<std::string>& set = {}) const {
    return load_scenario(directory_ / "s.toml", set);
  }
  [[nodiscard]] std::string said(const std::vector<std::string>& set = {}) const {
    try {
      (void)load(set);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::bad_input);
      const std::string text = error.what();
      EXPECT_EQ(text.find('\n'), std::string::npos) << "one line";
      return text;
    }
    return "accepted";
  }

  std::filesystem::path directory_;
};

TEST_F(NetworkFiles, GiveLevelsThatTheScenarioDoesNotGiveItself) {
  const Scenario scenario = load();
  const Link& link = *scenario.link(DatacenterId{0}, DatacenterId{1});
  EXPECT_EQ(link.latency, 11ms);
  EXPECT_EQ(link.bandwidth, Bandwidth{1.6e9});
  ASSERT_EQ(scenario.nodes.size(), 1U);
  EXPECT_EQ(scenario.nodes[0].device, Bandwidth{64e9});
  EXPECT_EQ(scenario.nodes[0].device_latency, 3us);
  EXPECT_EQ(scenario.nodes[0].internal, Bandwidth{16e9});
  EXPECT_EQ(scenario.nodes[0].internal_latency, 20us);
  EXPECT_TRUE(scenario.nodes[0].egress.is_unlimited()) << "no level of its own";

  write("s.toml", scenario_with("rtt = \"30ms\"\n", "device = \"1GB/s\"\n"));
  EXPECT_EQ(load().link(DatacenterId{0}, DatacenterId{1})->latency, 15ms);
  EXPECT_EQ(load().link(DatacenterId{0}, DatacenterId{1})->bandwidth, Bandwidth{1.6e9});
  EXPECT_EQ(load().nodes[0].device, Bandwidth{8e9});
  EXPECT_EQ(load().nodes[0].device_latency, 3us);
}

TEST_F(NetworkFiles, HaveLevelsForEachKind) {
  const Scenario scenario = load({"network.kind=all-gather"});
  EXPECT_EQ(scenario.link(DatacenterId{0}, DatacenterId{1})->latency, 12ms);
  EXPECT_TRUE(scenario.nodes[0].device.is_unlimited()) << "not measured for that kind";
  EXPECT_THAT(said({"network.kind=all-redcue"}), HasSubstr("was not measured there. Did you mean"));
}

TEST_F(NetworkFiles, TravelInTheScenariosText) {
  const Scenario read = load();
  std::filesystem::remove(directory_ / "levels.toml");
  const Scenario handed = parse_scenario(read.text, "elsewhere/s.toml");
  EXPECT_EQ(handed.nodes[0].device, read.nodes[0].device);
  EXPECT_THAT(handed.text, HasSubstr("#: levels levels.toml"));
  EXPECT_EQ(handed.text, read.text) << "reading it again adds nothing";
}

TEST_F(NetworkFiles, AreTakenBackByAnEmptyName) {
  std::filesystem::remove(directory_ / "levels.toml");
  EXPECT_EQ(load({"network.file="}).link(DatacenterId{0}, DatacenterId{1})->latency, 0ms);
}

TEST_F(NetworkFiles, OfAnotherClusterAreRefused) {
  write_levels("ranks_of_node = 2", "ranks_of_node = 8");
  EXPECT_THAT(said(), HasSubstr("levels.toml:2:17: the levels are of another cluster: its nodes "
                                "have 8 ranks, the scenario's 2"));
  write_levels("\"east\"", "\"south\"");
  EXPECT_THAT(said(), HasSubstr("levels.toml:3:15: the levels are of another cluster: its "
                                "datacenters are south, west, the scenario's east, west"));
}

TEST_F(NetworkFiles, ThatAreNoneAreRefused) {
  write_levels("latency = \"3us\"", "latency = \"-3us\"");
  EXPECT_THAT(said(), HasSubstr("levels.toml:7:11: level.latency"));
  write_levels("rate = \"8GB/s\"", "rte = \"8GB/s\"");
  EXPECT_THAT(said(), HasSubstr("levels.toml:8:1: unknown key \"rte\""));
  write_levels("level = \"node\"", "level = \"rack\"");
  EXPECT_THAT(said(), HasSubstr("levels.toml:5:9: "));
  write_levels("[cluster]\nranks_of_node = 2\ndatacenters = [\"west\", \"east\"]\n", "");
  EXPECT_THAT(said(), HasSubstr("there is no [cluster]"));
  write("levels.toml", "[cluster]\nranks_of_node = 2\ndatacenters = []\n");
  EXPECT_THAT(said(), HasSubstr("there is no [[level]]"));
  write("s.toml", scenario_with("", "") + "[levels]\nx = 1\n");
  EXPECT_THAT(said({"network.file=none.toml"}),
              HasSubstr("none.toml: the file of measured levels cannot be "));
}

}  // namespace
}  // namespace longhaul::scenario
