// Batches that do not fit into a device's memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "scenario/complaint.hpp"
#include "support/shipped.hpp"

namespace longhaul::scenario {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Two replicas of a stage whose weights, gradients and optimizer take 2 + 6 times 1 MiB; replica 1
/// has twice the samples, and its activations of 4 MiB are of its own batch.
const char* const kScenario = R"([costs]
forward = "30ms"
weights = "1MiB"
activation = "2MiB"
[[replica]]
replicas = [1]
activation = "4MiB"
[parallel]
stages = 1
replicas = 2
microbatches = 1
gradient_sync = "compressed"
[train]
batch = [20, 40]
[memory]
capacity = "12MiB"
)";

TEST(BatchMemory, RefusesActivationsThatDoNotFit) {
  EXPECT_EQ(complaint(kScenario), "accepted") << "8 and 4 MiB are 12";
  const std::string over = complaint(kScenario, {"memory.capacity=11MiB"});
  EXPECT_THAT(over, StartsWith("s.toml:14:"));
  EXPECT_THAT(over, HasSubstr("train.batch has 40 samples for replica 1 (rank 1)"));
  EXPECT_THAT(over, HasSubstr("take 4 MiB"));
  EXPECT_THAT(over, HasSubstr("optimizer 8 MiB"));
  EXPECT_THAT(over, HasSubstr("memory.capacity = 11 MiB"));
  EXPECT_THAT(over, HasSubstr("Give at most 30."));
  EXPECT_THAT(complaint(kScenario, {"memory.capacity=8MiB"}), HasSubstr("Not one sample fits"));
  EXPECT_EQ(complaint(kScenario, {"memory.capacity=4MiB", "memory.static=0B"}), "accepted");
  EXPECT_EQ(complaint(kScenario, {"memory.capacity=11MiB", "memory.recompute=true"}), "accepted");
}

/// A search may yet divide a stage whose place is open.
TEST(BatchMemory, LeavesAnOpenLayoutToItsSearch) {
  const std::vector<std::string> small{"memory.capacity=8MiB"};
  const Scenario open = parse_scenario(kScenario, "s.toml", small, Placing::optional);
  EXPECT_EQ(open.train.batch, (std::vector<int>{20, 40}));
}

/// Activations of a [model] are of microbatch_size samples: more samples need more.
TEST(BatchMemory, CountsSamplesOfRealLayers) {
  const auto said = [](const std::string& batch, const std::string& capacity,
                       const std::string& hetero = "") {
    std::vector<std::string> set{"train.batch=" + batch, "memory.capacity=" + capacity};
    if (!hetero.empty()) set.push_back("train.hetero=" + hetero);
    try {
      (void)load_scenario(testing::kShippedScenarios / "train-2dc.toml", set);
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{"accepted"};
  };
  EXPECT_EQ(said("4", "1GB"), "accepted");
  EXPECT_THAT(said("100000", "1GB"), HasSubstr("train.batch has 100000 samples for replica 0"));
  EXPECT_THAT(said("100000", "1GB", "false"), HasSubstr("has 100000 samples for replica 0"));
  const std::string over = said("[4, 4, 100000, 4]", "1GB");
  EXPECT_THAT(over, HasSubstr("replica 2 (rank 2)"));
  const std::size_t at = over.find("Give at most ");
  ASSERT_NE(at, std::string::npos) << over;
  const int most = std::stoi(over.substr(at + 13));
  EXPECT_EQ(said(std::to_string(most), "1GB"), "accepted");
  EXPECT_THAT(said(std::to_string(most + 1), "1GB"), HasSubstr("train.batch"));
}

/// Without a controller, too; the GPU is named where the scenario has one.
TEST(BatchMemory, RefusesMoreThanTheLargestBatch) {
  const auto said = [](const std::string& batch, const std::string& every) {
    try {
      (void)load_scenario(
          testing::kShippedScenarios / "stella-adapt.toml",
          std::vector<std::string>{"train.batch=" + batch, "train.adapt.every=" + every});
    } catch (const Error& error) {
      return std::string{error.what()};
    }
    return std::string{"accepted"};
  };
  for (const char* every : {"0", "20"}) {
    EXPECT_EQ(said("112", every), "accepted");
    EXPECT_THAT(said("[112, 112, 112, 113]", every),
                HasSubstr("train.batch has 113 samples for replica 3 (rank 3, rtx2080ti) "
                          "(train.adapt.most_batch = 112"));
    EXPECT_THAT(said("113", every), HasSubstr("--set train.batch=113")) << "where it was said";
  }
}

}  // namespace
}  // namespace longhaul::scenario
