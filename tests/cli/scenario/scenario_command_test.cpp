#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kTable =
    "src_region,dst_region,rtt_avg_ms,throughput_received_bps\n"
    "a,b,10,1e9\nb,c,10,1e9\nc,d,10,1e9\nd,a,10,1e9\na,c,100,1e9\nb,d,100,1e9\n";

TEST(ScenarioCommand, WritesSitesThatCanBeSimulated) {
  const TempDir directory;
  const std::string table = directory.write("t.csv", kTable);
  const std::string file = directory.path("many.toml");
  const Outcome wrote =
      longhaul_run({"scenario", "--sites", "6", "--gpus", "3072", "--regions", table, "--stages",
                    "4", "--microbatches", "4", "--out", file});
  EXPECT_EQ(wrote.code, 0) << wrote.err;
  EXPECT_THAT(wrote.out, HasSubstr("6 sites, 3072 GPUs, round trips of 40 ms"));
  const Outcome flat = longhaul_run({"simulate", file, "--schedule", "1f1b,zb-h1", "--json"});
  const Outcome played =
      longhaul_run({"simulate", file, "--schedule", "1f1b,zb-h1", "--hierarchical", "--json"});
  ASSERT_EQ(flat.code, 0) << flat.err;
  ASSERT_EQ(played.code, 0) << played.err;
  EXPECT_EQ(played.json().at("ranks"), 3072);
  for (std::size_t i = 0; i < 2; ++i) {
    const nlohmann::json one = flat.json().at("schedules").at(i);
    const nlohmann::json other = played.json().at("schedules").at(i);
    EXPECT_EQ(one.at("makespan_ns"), other.at("makespan_ns"));
    EXPECT_EQ(one.at("iteration_ns"), other.at("iteration_ns"));
    EXPECT_EQ(one.at("mfu"), other.at("mfu"));
    EXPECT_EQ(other.at("op_lists"), 1);
    EXPECT_GT(other.at("ops"), 10 * other.at("played").get<int>());
  }
}

TEST(ScenarioCommand, PutsSitesInTheShortestOrder) {
  const TempDir directory;
  const std::string table = directory.write("t.csv", kTable);
  const auto ask = [&](const std::string& tour, const std::string& seed) {
    const Outcome made = longhaul_run({"scenario", "--sites", "4", "--gpus", "4096", "--regions",
                                       table, "--tour", tour, "--seed", seed, "--json"});
    EXPECT_EQ(made.code, 0) << made.err;
    return made.json().at("round_trips_ms").get<double>();
  };
  double longest = 0;
  for (int seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(ask("shortest", std::to_string(seed)), 40) << seed;
    longest = std::max(longest, ask("drawn", std::to_string(seed)));
  }
  EXPECT_EQ(longest, 220);
}

TEST(ScenarioCommand, RefusesWhatDoesNotFit) {
  const auto refusal = [](std::vector<std::string> words) {
    words.insert(words.begin(), "scenario");
    const Outcome run = longhaul_run(words);
    EXPECT_EQ(run.code, 2);
    return run.err;
  };
  EXPECT_THAT(refusal({}), HasSubstr("--sites is missing"));
  EXPECT_THAT(refusal({"--sites", "1025"}), HasSubstr("from 1 to 1024"));
  EXPECT_THAT(refusal({"--sites", "2", "--gpus", "1048577"}), HasSubstr("from 1 to 1048576"));
  EXPECT_THAT(refusal({"--sites", "2", "--gpus", "255"}),
              AllOf(HasSubstr("too few for 2 sites"), HasSubstr("Give 256.")));
  EXPECT_THAT(refusal({"--sites", "2", "--tour", "long"}), HasSubstr("there is no \"long\""));
  EXPECT_THAT(refusal({"--sites", "2", "--regions", "none.csv"}), HasSubstr("none.csv"));
}

TEST(SimulateHierarchical, RefusesWhatNeedsThePlanOfAllRanks) {
  const std::string scenario = testing::in_checkout("benchmarks/scenarios/m70-2dc.toml");
  const auto refusal = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"simulate", scenario, "--hierarchical", "--schedule"});
    const Outcome run = longhaul_run(words);
    EXPECT_EQ(run.code, 2) << run.out;
    return run.err;
  };
  EXPECT_THAT(refusal({"1f1b", "--bounds"}), HasSubstr("--bounds: it needs the plan"));
  EXPECT_THAT(refusal({"1f1b", "--comm", "grouped"}), HasSubstr("--comm: it needs the plan"));
  EXPECT_THAT(refusal({"best"}), HasSubstr("best is no static schedule"));
  EXPECT_THAT(refusal({"cross-ud"}), HasSubstr("cross-ud is made for the links"));
  EXPECT_THAT(refusal({"1f1b", "--set", "link.aggregate=10Gbps"}),
              HasSubstr("a link with an aggregate"));
}

TEST(SimulateHierarchical, GivesThePlansTimesWithoutReplicasToo) {
  const std::string scenario = testing::in_checkout("benchmarks/scenarios/m70-2dc.toml");
  const Outcome flat = longhaul_run({"simulate", scenario, "--schedule", "static", "--json"});
  const Outcome played =
      longhaul_run({"simulate", scenario, "--schedule", "static", "--hierarchical", "--json"});
  ASSERT_EQ(played.code, 0) << played.err;
  const nlohmann::json schedules = flat.json().at("schedules");
  ASSERT_EQ(schedules.size(), played.json().at("schedules").size());
  for (std::size_t i = 0; i < schedules.size(); ++i)
    EXPECT_EQ(schedules.at(i).at("makespan_ns"),
              played.json().at("schedules").at(i).at("makespan_ns"));
}

}  // namespace
}  // namespace longhaul::test
