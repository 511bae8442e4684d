// Links and datacenters in the answer of `check`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kRegions = scenario_text("regions", R"([[datacenter]]
name = "west"
stages = [0, 1]
region = "azure:westus"
gpus_per_node = 8
price = 2.5
[[datacenter]]
name = "east"
stages = [2, 3]
region = "azure:eastus"
egress_price = 0.02
[[link]]
from = "west"
to = "east"
latency = "10ms"
connections = "auto"
aggregate = "50Gbps"
)");

TEST(LinkTable, ShowsWhatLinksAndSitesAreMadeOf) {
  const TempDir directory;
  const std::string file = directory.write("s.toml", kRegions);
  const Outcome text = longhaul_run({"check", file});
  ASSERT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("5 x 1.22 Gbps, cap 5 Gbps"), HasSubstr("50 Gbps"),
                              HasSubstr("azure:westus"), HasSubstr("GPUs a node"), HasSubstr("2.5"),
                              HasSubstr("0.02")));
  const auto answer = longhaul_run({"check", file, "--json"}).json()["files"][0];
  EXPECT_EQ(answer["datacenters"][0]["gpus_per_node"], 8);
  EXPECT_EQ(answer["datacenters"][0]["price_per_gpu_hour"], 2.5);
  EXPECT_TRUE(answer["datacenters"][1]["price_per_gpu_hour"].is_null());
  EXPECT_EQ(answer["datacenters"][1]["egress_price_per_gb"], 0.02);
  EXPECT_EQ(answer["links"][0]["connections"]["count"], 5);
  EXPECT_EQ(answer["links"][0]["aggregate_bits_per_second"], 50e9);
  EXPECT_TRUE(answer["links"][1]["connections"].is_null());
}

TEST(LinkTable, TellsTheWeatherInAFewWords) {
  const TempDir directory;
  directory.write("wan.csv", "time_s,latency_ms\n0,10\n60,20\n");
  const std::string file = directory.write(
      "s.toml", kRegions + "trace = \"wan.csv\"\ntrace_repeat = \"2min\"\njitter = 0.1\n" +
                    "loss = 0.001\noutage = [\"1s\", \"1s\"]\n");
  const Outcome text = longhaul_run({"check", file});
  ASSERT_EQ(text.code, 0) << text.err;
  const std::string weather =
      "2 states over 60 s (wan.csv), every 120 s, jitter, loss 0.1%, 1 outage";
  EXPECT_THAT(text.out, HasSubstr("west > east: " + weather + "\n"));
  EXPECT_THAT(text.out, Not(HasSubstr("east > west:"))) << "nothing varies there";
  const auto links = longhaul_run({"check", file, "--json"}).json()["files"][0]["links"];
  EXPECT_EQ(links[0]["weather"], weather);
  EXPECT_EQ(links[1]["weather"], "");
}

TEST(LinkTable, LeavesOutWhatNobodyGives) {
  const TempDir directory;
  const Outcome run = longhaul_run({"check", directory.write("s.toml", kTwoSites)});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(Not(HasSubstr("connections")), Not(HasSubstr("aggregate")),
                             Not(HasSubstr("region")), Not(HasSubstr("GPUs a node")),
                             Not(HasSubstr("weather"))));
}

TEST(LinkTable, ScenariosWithoutAPlaceAreSentToThePlanner) {
  const TempDir directory;
  std::string open = kTwoSites;
  for (const std::string line : {"stages = [0, 1]\n", "stages = [2, 3]\n"})
    open.erase(open.find(line), line.size());
  const std::string file = directory.write("s.toml", open);
  for (const std::string command : {"check", "simulate", "schedule", "ops"}) {
    const Outcome run = longhaul_run({command, file, "--schedule", "1f1b"});
    EXPECT_EQ(run.code, 2) << command;
    EXPECT_THAT(run.err, HasSubstr("ask `longhaul plan`")) << command;
  }
}

}  // namespace
}  // namespace longhaul::test
