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

}  // namespace
}  // namespace longhaul::test
