#include <map>

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

/// What methods of train-2dc exchange, as bench_train plays it.
class TuneFamily : public TuneCommand {
protected:
  /// Periods in seconds of an exchange, by method. `lines`: from `exchange` to `wan_bytes`.
  [[nodiscard]] std::map<std::string, double> periods(
      const std::vector<std::pair<std::string, std::string>>& lines,
      const std::vector<std::string>& more = {}) {
    std::string table =
        "method,seed,exchange,serve,staleness,local_steps,fragments,overlap,host_tasks,wan_bytes,"
        "updates,validation\n";
    for (const auto& [method, how] : lines) table += method + ",1," + how + ",80,2.2\n";
    std::vector<std::string> words{
        "tune",     testing::in_checkout("benchmarks/scenarios/train-2dc.toml"),
        "--family", "all",
        "--curves", dir_.write("curves.csv", table),
        "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome run = longhaul_run(words);
    EXPECT_EQ(run.code, 0) << run.err;
    std::map<std::string, double> found;
    const nlohmann::json methods = run.json()["settings"][0]["methods"];
    for (const nlohmann::json& each : methods)
      found[each["method"]] = each["period_ns"].get<double>() * 1e-9;
    return found;
  }
};

/// Half of 1,052,672 bytes goes each way, at 0.576 Mbps: 7.31 s; as of 88 M numbers in the place of
/// 131,584 it is so much more.
TEST_F(TuneFamily, SendsTheBytesOfTheModelThatItsOwnStandsFor) {
  const std::pair<std::string, std::string> dense{"none", "sites,arrival,0,1,1,0,0,1052672"};
  const double transfer = 526'336 * 8 / 0.576e6;
  const double own = periods({dense})["none"];
  const double nominal = periods({dense}, {"--set", "train.stands_for=vit-b-16"})["none"];
  EXPECT_NEAR((nominal - own) / transfer, 88e6 / 131'584 - 1, 0.01 * 88e6 / 131'584);
}

/// East is half as fast: of 32 samples west takes 11 for each replica, east 5.
TEST_F(TuneFamily, DividesBatchesWhereAMethodDoes) {
  auto found = periods(
      {{"none", "sites,arrival,0,1,1,0,0,1000"}, {"none+hetero", "sites,arrival,0,1,1,0,0,1000"}},
      {"--set", "datacenter.east.speed=0.5", "--bandwidth", "10Gbps"});
  EXPECT_NEAR(found["none"] - found["none+hetero"], 0.1096 * (2 - 11.0 / 8), 0.003);
}

/// Only those that compress on the host take its times.
TEST_F(TuneFamily, ChargesTimesOfTheHostToWhatHasThem) {
  const std::vector<std::pair<std::string, std::string>> lines{
      {"none", "sites,arrival,0,1,1,0,0,1000"}, {"block", "ring,deadline,0,1,1,0,1,1000"}};
  auto without = periods(lines);
  auto with = periods(lines, {"--set", "train.costs.compress=100ms"});
  EXPECT_EQ(with["none"], without["none"]);
  EXPECT_GT(with["block"], without["block"] + 0.1);
}

/// 2,000 bytes each way take 27.8 ms, and 10 ms of latency: after all steps, or, a quarter after
/// each second one, beside the step that follows.
TEST_F(TuneFamily, ExchangesFragmentsBesideTheSteps) {
  auto found = periods({{"diloco:8", "direct,deadline,0,8,1,0,0,4000"},
                        {"streaming-diloco:8 4 1", "direct,deadline,0,8,4,1,0,4000"}});
  EXPECT_NEAR(found["streaming-diloco:8 4 1"], 8 * 0.1096, 0.001);
  EXPECT_GT(found["diloco:8"], found["streaming-diloco:8 4 1"] + 0.012);
}

}  // namespace
}  // namespace longhaul::test
