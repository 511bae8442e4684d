#include "collective/iteration/communications.hpp"

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/overlaps.hpp"

namespace longhaul::collective {
namespace {

using testing::centauri_toy;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::planned_iteration;

/// "all-gather of 2 MB": of stage 0, in the order in which they were added.
std::vector<std::string> texts(const IterationPlan& plan) {
  std::vector<std::string> texts;
  for (const Communication& each : plan.stages[DeviceId{0}].communications)
    texts.push_back(
        fmt::format("{} {} of {}", to_string(each.traffic), to_text(each.kind), each.size.count()));
  return texts;
}

/// How often each kind comes, and its bytes.
std::map<std::string, int> counts(const Scenario& scenario, const char* overlap) {
  std::map<std::string, int> counts;
  for (const std::string& text : texts(planned_iteration(scenario, overlap))) ++counts[text];
  return counts;
}

TEST(Communications, OfShardedWeightsFollowRegather) {
  const auto gathers = [](const char* regather) {
    return counts(
        centauri_toy({"parallel.microbatches=3", std::string{"parallel.regather="} + regather}),
        "zero3")["fsdp all-gather of 2000000"];
  };
  EXPECT_EQ(gathers("always"), 3 * 4);
  // gpipe: the last F of the iteration is followed by its own D alone once.
  EXPECT_EQ(gathers("all-but-last"), 3 * 4 - 1);
  EXPECT_EQ(gathers("once"), 2);
}

TEST(Communications, ScatterEachMicrobatchAndSumShardsOnce) {
  const auto found = counts(
      centauri_toy({"parallel.microbatches=3", "parallel.replicas=4", "parallel.gradient_bytes=4"}),
      "zero3");
  EXPECT_EQ(found.at("fsdp reduce-scatter of 4000000"), 3 * 2);
  EXPECT_EQ(found.at("dp all-reduce of 8000000"), 1);
}

TEST(Communications, OfWholeWeightsGoInBuckets) {
  const Scenario scenario = centauri_toy({"parallel.bucket=2MB"});
  EXPECT_THAT(texts(planned_iteration(scenario, "ddp")),
              ElementsAre("dp all-reduce of 2000000", "dp all-reduce of 2000000"));
  EXPECT_THAT(texts(planned_iteration(centauri_toy(), "ddp")),
              ElementsAre("dp all-reduce of 4000000"));
  EXPECT_THAT(texts(planned_iteration(centauri_toy(), "zero1")),
              ElementsAre("dp all-gather of 4000000", "dp reduce-scatter of 4000000"));
  const auto zero2 = counts(centauri_toy({"parallel.microbatches=3"}), "zero2");
  EXPECT_EQ(zero2.at("dp reduce-scatter of 4000000"), 3);
}

Scenario llama(std::vector<std::string> set) {
  set.insert(set.end(), {"model.layers=4", "parallel.replicas=2", "parallel.shard=2",
                         "parallel.tensor=4", "datacenter.gpus=8"});
  return scenario::load_scenario(testing::kShippedScenarios / "centauri-fsdp.toml", set);
}

// Megatron: two all-reduces a layer and way; with sequence parallelism two gathers and two
// scatters, and two more gathers in the backward.
TEST(Communications, OfTensorRanksAreMegatrons) {
  const std::string size = std::to_string(2 * 4 * 2048 * 4096);  // 2 b s d
  const auto plain = counts(llama({}), "serial");
  EXPECT_EQ(plain.at("tp all-reduce of " + size), 4 * 4);
  const auto sequence = counts(llama({"parallel.sequence_parallel=true"}), "serial");
  EXPECT_EQ(sequence.at("tp all-gather of " + size), 4 * (2 + 2 + 2));
  EXPECT_EQ(sequence.at("tp reduce-scatter of " + size), 4 * (2 + 2));
  EXPECT_FALSE(sequence.contains("tp all-reduce of " + size));
}

TEST(Communications, RefuseEstimates) {
  const Scenario scenario = centauri_toy({"parallel.gradient_sync=ring-rate", "parallel.shard=1"});
  const auto plan =
      overlapped(testing::overlap_named("serial"), schedule::generate("gpipe", scenario), scenario);
  ASSERT_FALSE(plan);
  EXPECT_THAT(plan.refusal().reason, HasSubstr("is an estimate that holds nothing"));
}

}  // namespace
}  // namespace longhaul::collective
