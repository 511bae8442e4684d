// Runs of bench_train: what a method chooses for tensors, and what validation looks at.
#include "integration/train_runs/train_runs_fixture.hpp"

namespace longhaul::testing {
namespace {

/// As of a larger model its tensors are sent as halves and by their largest numbers.
TEST_F(TrainRuns, OfEspressoChooseForEachTensor) {
  ASSERT_EQ(run(3, words("none,espresso:keep=10%,espresso:keep=10%:exchange=ring",
                         {"--set", "train.stands_for=swin-b", "--emulate", "off"})),
            0)
      << output();
  const nlohmann::json all = curves();
  for (const std::size_t i : {1, 2}) {
    EXPECT_TRUE(all[i]["replay"]["losses_equal"].get<bool>());
    EXPECT_EQ(all[i]["replay"]["largest_difference"].get<double>(), 0);
    EXPECT_TRUE(all[i]["replicas_equal"].get<bool>());
    EXPECT_TRUE(all[i]["mass"]["lost_relative"].is_null()) << "halves forget";
  }
  EXPECT_LT(all[1]["wan"]["payload_bytes"].get<double>(),
            0.45 * all[0]["wan"]["payload_bytes"].get<double>())
      << "fewer than halves";
}

/// After two updates a number has missed one at most, and both runs have computed with the same
/// weights: `exact` differs by what validation plays alone.
TEST_F(TrainRuns, ValidateExactStepsAsDenseOnes) {
  ASSERT_EQ(run(3, words("topk:keep=5%,topk:keep=5%:lazy=exact",
                         {"--optimizer", "momentum", "--max-iterations", "2", "--points", "2"})),
            0)
      << output();
  const nlohmann::json skip = curves()[0], exact = curves()[1];
  EXPECT_EQ(exact["losses"], skip["losses"]);
  EXPECT_EQ(exact["points"][0][3], skip["points"][0][3]);
  EXPECT_NE(exact["points"][1][3], skip["points"][1][3]);
  EXPECT_TRUE(exact["replay"]["equal"].get<bool>());
}

}  // namespace
}  // namespace longhaul::testing
