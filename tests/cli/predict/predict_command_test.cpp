#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "cli/support.hpp"
#include "support/shipped.hpp"

namespace longhaul::test {
namespace {

using ::testing::HasSubstr;

const std::string kPublished = testing::in_checkout("benchmarks/rows/published-runs.csv");

TEST(PredictCommand, PredictsPublishedRunsFromTablesAlone) {
  const Outcome run = longhaul_run({"predict", kPublished, "--calibration", "none", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json();
  ASSERT_EQ(json["rows"].size(), 11U);
  const std::vector<double> measured_ms{60100, 50200, 44400, 1420,  1100, 18130,
                                        13750, 49050, 37830, 94420, 71490};
  for (std::size_t i = 0; i < measured_ms.size(); ++i) {
    const auto& row = json["rows"][i];
    const double ratio = row["iteration_ns"].get<double>() / (measured_ms[i] * 1e6);
    EXPECT_NEAR(ratio, 1, i < 3 ? 0.25 : 0.10) << row["row"];
    std::int64_t sum = 0;
    for (const auto& part : row["parts"]) {
      EXPECT_GE(part.get<std::int64_t>(), 0) << row["row"];
      sum += part.get<std::int64_t>();
    }
    EXPECT_EQ(sum, row["iteration_ns"]);
    EXPECT_LT(row["low_ns"], row["iteration_ns"]);
    EXPECT_GT(row["high_ns"], row["iteration_ns"]);
    EXPECT_TRUE(row["fits"]);
  }
  EXPECT_EQ(json["parameters"].size(), 12U);
  EXPECT_FALSE(json["parameters"][0]["fitted"]);
  EXPECT_GT(json["ops"], 100'000);
  EXPECT_TRUE(json.contains("seconds"));
}

// (8, 8, 35) on nodes of 8: tensor ranks stay inside, the 8 rings of replicas of a node leave it.
TEST(PredictCommand, ShowsWhichRingsLeaveNodes) {
  const auto rings = longhaul_run({"predict", kPublished, "--json"}).json()["rows"][0]["rings"];
  EXPECT_FALSE(rings["tensor"]["leaves_node"]);
  EXPECT_TRUE(rings["data"]["leaves_node"]);
  EXPECT_EQ(rings["data"]["stride"], 8);
  EXPECT_EQ(rings["data"]["share_node"], 8);
  EXPECT_EQ(rings["pipeline"]["leave_node"], 34);
  EXPECT_THAT(longhaul_run({"predict", kPublished, "--wide"}).out, HasSubstr("d, p"));
}

// Of one GPU, of shapes whose operators take fractions of a nanosecond.
TEST(PredictCommand, PartsOfOneGpuAreItsOwnWorkAlone) {
  const TempDir directory;
  std::string csv =
      "row,machine,model,gpus,global_batch,micro_batch,sequence,hidden,intermediate,heads,kv_heads,"
      "layers,vocabulary,mlp,positions,tensor,data,pipeline,chunks,schedule,recompute,sharding,"
      "sequence_parallel,attention,precision\n";
  Random random{7};
  constexpr int kRows = 40;
  for (int row = 0; row < kRows; ++row) {
    const auto heads = random.between(4, 16);
    csv += fmt::format(
        "{},selene,m,1,{},1,{},{},{},{},{},{},50257,gelu,learned,1,1,1,1,accumulate,"
        "none,none,no,plain,{}\n",
        row, random.between(1, 9), 512 * random.between(1, 4), 64 * heads, 256 * heads, heads,
        heads, random.between(1, 6), row == 0 ? "fp8" : "fp16");
  }
  const std::string rows = directory.write("rows.csv", csv);
  const Outcome run = longhaul_run({"predict", rows, "--extrapolate", "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  const auto json = run.json()["rows"];
  ASSERT_EQ(json.size(), static_cast<std::size_t>(kRows));
  for (const auto& row : json) {
    std::int64_t sum = 0;
    for (const auto& part : row["parts"]) sum += part.get<std::int64_t>();
    EXPECT_EQ(sum, row["iteration_ns"]);
    for (const char* none : {"tensor", "data", "pipeline"})
      EXPECT_EQ(row["parts"][none], 0) << none;
    EXPECT_GE(row["parts"]["bubble"], 0);
  }
  EXPECT_EQ(json[0]["products_as"], "bf16");
  EXPECT_THAT(longhaul_run({"predict", rows, "--extrapolate"}).out, HasSubstr("! 1 row of fp8"));
}

TEST(PredictCommand, TakesWhatProfileFitWrites) {
  const TempDir directory;
  const std::string calibration = directory.path("cal.toml");
  const Outcome fit = longhaul_run({"profile", "fit", kPublished, "--out", calibration, "--json"});
  ASSERT_EQ(fit.code, 0) << fit.err;
  const auto errors = fit.json()["errors"];
  EXPECT_LE(errors["fitted"]["mape"], errors["unfitted"]["mape"]);
  EXPECT_TRUE(errors.contains("left_out"));
  const Outcome run = longhaul_run({"predict", kPublished, "--calibration", calibration, "--json"});
  ASSERT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(run.json()["parameters"][0]["fitted"]);
  EXPECT_THAT(longhaul_run({"predict", kPublished, "--calibration", calibration}).out,
              HasSubstr("megatron-1t"));
}

TEST(PredictCommand, NamesTheLineOfARowThatIsNone) {
  const TempDir directory;
  const std::string rows = directory.write("rows.csv", "row,machine\n1,selene\n");
  const Outcome run = longhaul_run({"predict", rows});
  EXPECT_EQ(run.code, 2);
  EXPECT_THAT(run.err, HasSubstr("rows.csv:2: the column \"model\" is missing"));
}

}  // namespace
}  // namespace longhaul::test
