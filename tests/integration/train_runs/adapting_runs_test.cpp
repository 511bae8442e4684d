// Runs of bench_train whose batches and rate a controller adapts, and probe runs.
#include "integration/train_runs/train_runs_fixture.hpp"
#include "planner/tune/surrogate.hpp"

namespace longhaul::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kAdapting = R"([scenario]
name = "tiny adapting training"
[model]
layers = 4
hidden = 16
intermediate = 32
heads = 2
vocabulary = 32
sequence_length = 8
[parallel]
stages = 1
replicas = 3
microbatches = 1
gradient_sync = "compressed"
[train]
preset = "vit-b-16"
parts = 2
batch = [2, 1, 3]
[train.compress]
method = "threshold"
keep = "10%"
block = 4
[train.adapt]
every = 3
most_batch = 6
[[datacenter]]
name = "west"
replicas = "0-1"
gpu = ["rtx4090", "v100"]
[[datacenter]]
name = "east"
replicas = "2"
gpu = "rtx2080ti"
[[link]]
between = ["west", "east"]
latency = "500us"
bandwidth = "2Mbps"
)";

class AdaptingRuns : public TrainRuns {
protected:
  AdaptingRuns() { write_scenario(kAdapting); }
};

/// Three ranks train and a fourth decides. Whatever it decides, other code gets the same numbers.
TEST_F(AdaptingRuns, AdaptBatchesAndRateWhileTheyRun) {
  for (const char* const staleness : {"0", "1"}) {
    SCOPED_TRACE(staleness);
    ASSERT_EQ(run(4, words("stella,stella:exchange=sites,none",
                           {"--max-iterations", "24", "--set",
                            std::string{"train.staleness="} + staleness})),
              0)
        << output();
    const nlohmann::json all = curves();
    for (std::size_t i : {0U, 1U}) {
      const nlohmann::json& curve = all[i];
      const nlohmann::json& adaptation = curve["adaptation"];
      ASSERT_GE(adaptation.size(), 1U) << "how many depends on how soon answers come";
      int before = 0, batch = 6, samples = 0;
      for (const nlohmann::json& made : adaptation) {
        const int from = made["iteration"].get<int>();
        EXPECT_GT(from, before);
        samples += (from - before) * batch;
        before = from;
        batch = 0;
        for (const nlohmann::json& own : made["batch"]) batch += own.get<int>();
        EXPECT_EQ(made["batch"].size(), 3U);
        EXPECT_GT(made["bandwidth_bits_per_second"].get<double>(), 0);
      }
      EXPECT_EQ(curve["samples"], samples + (24 - before) * batch) << "batches changed";
      EXPECT_TRUE(curve["replay"]["equal"].get<bool>());
      EXPECT_EQ(curve["replay"]["losses_equal"].get<bool>(), true);
      EXPECT_TRUE(curve["replicas_equal"].get<bool>());
      EXPECT_LE(curve["mass"]["lost_relative"].get<double>(), 1e-5);
      EXPECT_EQ(curve["losses"].size(), 24U);
    }
    EXPECT_FALSE(all[2].contains("adaptation")) << "all numbers have no rate";
    std::filesystem::remove_all(out());
  }
}

/// What was decided before the checkpoint stays decided.
TEST_F(AdaptingRuns, OfAControllerThatWereKilledGoOn) {
  const std::vector<std::string> kept{"--checkpoint-every", "10", "--max-iterations", "24"};
  std::vector<std::string> killed = kept;
  killed.insert(killed.end(), {"--fault", "kill@1:3:21"});
  EXPECT_NE(run(4, words("stella", killed)), 0);
  EXPECT_TRUE(std::filesystem::exists(out() + "/20.3.state")) << output();
  std::vector<std::string> resumed = kept;
  resumed.emplace_back("--resume");
  ASSERT_EQ(run(4, words("stella", resumed)), 0) << output();
  const nlohmann::json curve = curves().front();
  ASSERT_GE(curve["adaptation"].size(), 2U);
  EXPECT_LT(curve["adaptation"][0]["iteration"].get<int>(), 10) << "before the first checkpoint";
  EXPECT_TRUE(curve["replay"]["equal"].get<bool>());
  EXPECT_TRUE(curve["replay"]["losses_equal"].get<bool>());
}

/// Algorithm 1 on ranks: the same from one seed, and a table that tune reads.
TEST_F(AdaptingRuns, ProbeBatchesAndRates) {
  const std::vector<std::string> probes{
      "--probes",        "4",    "--probe-samples", "96",
      "--probe-batches", "4,24", "--set",           "train.staleness=1"};
  std::vector<std::string> more = probes;
  more.insert(more.end(), {"--ranks-per-process", "3"});
  std::string tables[2];
  for (std::string& table : tables) {
    ASSERT_EQ(run(0, words("stella", more)), 0) << output();
    std::ifstream file{out() + "/probes.csv"};
    table.assign(std::istreambuf_iterator<char>{file}, {});
    const nlohmann::json record = nlohmann::json::parse(std::ifstream{out() + "/record.json"});
    EXPECT_EQ(record["probes"]["tested"].size(), 4U);
    const nlohmann::json& base = record["probes"]["base"];
    EXPECT_EQ(base["batch"], 14) << "half way";
    std::int64_t took = base["took_ns"].get<std::int64_t>();
    for (const nlohmann::json& tested : record["probes"]["tested"])
      took += tested["took_ns"].get<std::int64_t>();
    EXPECT_EQ(planner::read_probes(table, "probes.csv").took, Duration{took});
    std::filesystem::remove_all(out());
  }
  const auto numbers = [](const std::string& table) {  // without took_ns
    std::vector<std::string> lines;
    std::istringstream text{table};
    for (std::string line; std::getline(text, line);)
      lines.push_back(line.substr(0, line.rfind(',')));
    return lines;
  };
  EXPECT_THAT(tables[0], HasSubstr("model,version,batch,compression_rate,g"));
  EXPECT_THAT(tables[0], HasSubstr("vit-b-16,longhaul,"));
  EXPECT_EQ(numbers(tables[0]), numbers(tables[1]));
  more.insert(more.end(), {"--probe-batches", "2,24"});
  EXPECT_EQ(run(0, words("stella", more)), 2);
  EXPECT_THAT(output(), HasSubstr("no batches of 3 replicas"));
}

}  // namespace
}  // namespace longhaul::testing
