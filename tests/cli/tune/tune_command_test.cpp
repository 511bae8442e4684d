#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

class TuneCommand : public ::testing::Test {
protected:
  Outcome tune(const std::string& probes) const {
    const std::string table = dir_.write("probes.csv", "model,batch,compression_rate,g\n" + probes);
    return longhaul_run({"tune", testing::in_checkout("benchmarks/scenarios/stella-fig14.toml"),
                         "--probes", table, "--bandwidth", "1Gbps", "--json"});
  }

  TempDir dir_;
};

TEST_F(TuneCommand, TakesEqualProbes) {
  const Outcome run = tune("vit_b_16,10,0.9,0.1\nvit_b_16,100,0.9,0.1\nvit_b_16,200,0.5,0.1\n");
  ASSERT_EQ(run.code, 0) << run.err;
  const nlohmann::json setting = run.json()["settings"][0];
  EXPECT_NEAR(setting["g"].get<double>(), 0.1, 1e-9);
  EXPECT_GE(setting["exhaustive_gap"].get<double>(), 0);
}

TEST_F(TuneCommand, LeavesOutAnExhaustiveSearchOfTooManySettings) {
  const Outcome run = tune("vit_b_16,10,0.9,0.1\nvit_b_16,20000,0.9,0.1\nvit_b_16,300,0.5,0.2\n");
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(run.json()["settings"][0]["exhaustive_gap"].is_null());
}

TEST_F(TuneCommand, RefusesALargerBatchThanItTries) {
  const Outcome run = tune("vit_b_16,10,0.9,0.1\nvit_b_16,2e5,0.9,0.1\n");
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("probes.csv:3: batch is \"2e5\""));
}

/// Two methods of train-2dc: over its own link the smaller sets win, over a fast one fewer updates.
TEST_F(TuneCommand, TakesTheMethodThatReachesALossSoonest) {
  const std::string head =
      "method,seed,exchange,serve,staleness,local_steps,wan_bytes,updates,validation\n";
  const std::string table = dir_.write(
      "curves.csv", head +
                        "none,1,sites,arrival,0,1,1052672,50,3\nnone,1,sites,arrival,0,1,1052672"
                        ",100,2.2\ntopk:keep=1%,1,sites,arrival,0,1,8000,150,3\n"
                        "topk:keep=1%,1,sites,arrival,0,1,8000,200,2.2\n");
  const auto ask = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{
        "tune",     testing::in_checkout("benchmarks/scenarios/train-2dc.toml"),
        "--family", "all",
        "--curves", table,
        "--json"};
    words.insert(words.end(), more.begin(), more.end());
    return longhaul_run(words);
  };
  const Outcome own = ask({"--bandwidth", "0.576Mbps,1Gbps"});
  ASSERT_EQ(own.code, 0) << own.err;
  const nlohmann::json settings = own.json()["settings"];
  EXPECT_EQ(settings[0]["pick"], "topk:keep=1%");
  EXPECT_EQ(settings[1]["pick"], "none");
  // Half of the bytes each way at 0.576 Mbps: 7.3 s, with blocks and latency beside it.
  EXPECT_NEAR(settings[0]["methods"][0]["period_ns"].get<double>() * 1e-9, 7.4, 0.15);
  EXPECT_EQ(settings[0]["methods"][0]["updates"], 100);
  EXPECT_LT(settings[0]["methods"][0]["least_ns"], settings[0]["methods"][0]["time_ns"]);
  EXPECT_EQ(ask({}).json()["settings"][0]["methods"][0]["period_ns"],
            settings[0]["methods"][0]["period_ns"]);
  EXPECT_EQ(ask({"--target", "loss=1"}).json()["settings"][0]["pick"], nullptr);
  EXPECT_THAT(ask({"--probes", table}).err, HasSubstr("--family chooses no batches"));
  EXPECT_THAT(ask({"--set", "train.gather=node"}).err, HasSubstr("train.gather = \"node\""));
}

}  // namespace
}  // namespace longhaul::test
